#!/usr/bin/env python3
"""The chat page in a headless Chromium, driven by its WebDriver (https://www.w3.org/TR/webdriver2/): what a user writes is
answered as the API answers it, in order, nothing of it is taken for HTML, and nothing is loaded from elsewhere."""

import http.client
import json
import re
import shutil
import subprocess
import time
import unittest

import served_model
import tools

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element in WebDriver's replies
ENTER = "\ue007"


@unittest.skipUnless(shutil.which("chromedriver"), "needs chromedriver, of the package chromium-driver")
class ChatPage(tools.ToolTest):
    def setUp(self):
        super().setUp()
        weights = served_model.write_model(self.folder)
        plan = self.folder / "s.plan"
        tools.succeed("bowline-compile", weights, "--mode", "serve", "--max-context", "64", "--max-batch", "2", "--buckets",
                      "1,8,64", *tools.ONE_THREAD, "-o", plan)
        (self.folder / "keys").write_text("secret\n")
        self.port = self.start(r"listening on http://127\.0\.0\.1:(\d+)\n", "stderr",
                               tools.tool("bowline-serve"), plan, "--weights", weights, "--port", "0", "--api-key-file",
                               self.folder / "keys")
        self.driver = self.start(r"ChromeDriver was started successfully on port (\d+)\.\n", "stdout", "chromedriver",
                                 "--port=0")
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            f"--user-data-dir={self.folder}/profile"]}
        self.session = self.call("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})["sessionId"]
        self.addCleanup(lambda: self.call("DELETE", f"/{self.session}"))
        self.page("POST", "/url", {"url": f"http://127.0.0.1:{self.port}/"})

    def start(self, ready, stream, *command):
        """The port that a program says that it listens on."""
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE if stream == "stdout" else None,
                                   stderr=subprocess.PIPE if stream == "stderr" else None, text=True)
        output = getattr(process, stream)
        self.addCleanup(output.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        said = ""
        for line in output:
            if found := re.fullmatch(ready, line):
                return int(found[1])
            said += line
        self.fail(f"{command[0]} ended with {process.wait(tools.TIMEOUT_SECONDS)}: {said}")

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.driver, timeout=tools.TIMEOUT_SECONDS)
        connection.request(method, f"/session{path}", json.dumps(body) if body is not None else None)
        reply = connection.getresponse()
        value = json.loads(reply.read())["value"]
        connection.close()
        self.assertEqual(reply.status, 200, value)
        return value

    def page(self, method, path, body=None):
        return self.call(method, f"/{self.session}{path}", body)

    def script(self, text):
        return self.page("POST", "/execute/sync", {"script": text, "args": []})

    def write(self, selector, text):
        element = self.page("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self.page("POST", f"/element/{element}/value", {"text": text})

    def until(self, condition):
        limit = time.monotonic() + tools.TIMEOUT_SECONDS
        while not self.script(f"return {condition}"):
            self.assertLess(time.monotonic(), limit, self.script("return document.body.innerText"))
            time.sleep(0.05)

    def answer_of_api(self, messages):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=tools.TIMEOUT_SECONDS)
        connection.request("POST", "/v1/chat/completions", json.dumps({"messages": messages, "temperature": 0,
                                                                       "max_tokens": 5}), {"Authorization": "Bearer secret"})
        content = json.loads(connection.getresponse().read())["choices"][0]["message"]["content"]
        connection.close()
        return content

    def test_a_chat(self):
        self.script("document.getElementById('details').open = true")
        self.write("#tokens", "5")
        self.script("const t = document.getElementById('temperature'); t.value = 0; t.dispatchEvent(new Event('input'))")
        # Without a key the page says that it needs one.
        self.write("#message", f"a{ENTER}")
        self.until("document.getElementById('wrong').textContent.includes('API key')")
        self.write("#key", "secret")
        # The message is there again.
        self.assertEqual(self.script("const m = document.getElementById('message'), was = m.value; m.value = ''; return was"),
                         "a")
        said = "<b>"
        self.write("#message", f"{said}{ENTER}")
        done = "document.querySelectorAll('article.assistant[aria-busy=false], article.assistant:not([aria-busy])').length"
        self.until(f"{done} === 1 && document.getElementById('stop').hidden")
        self.assertEqual(self.script("return document.querySelector('article.user .text').textContent"), said)
        self.assertEqual(self.script("return document.querySelectorAll('#log b').length"), 0)
        conversation = [{"role": "user", "content": said}]
        first = self.answer_of_api(conversation)
        self.assertEqual(self.script("return document.querySelector('article.assistant .text').textContent"), first.strip())
        # The next message goes with the earlier messages.
        self.write("#message", f"b{ENTER}")
        self.until(f"{done} === 2 && document.getElementById('stop').hidden")
        conversation += [{"role": "assistant", "content": first}, {"role": "user", "content": "b"}]
        self.assertEqual(self.script("return [...document.querySelectorAll('article.assistant .text')].pop().textContent"),
                         self.answer_of_api(conversation).strip())
        # Everything came from this server, and nothing was wrong but the request without a key.
        hosts = self.script("return [...new Set(performance.getEntriesByType('resource').map(e => new URL(e.name).host))]")
        self.assertEqual(hosts, [f"127.0.0.1:{self.port}"])
        errors = [entry["message"] for entry in self.page("POST", "/se/log", {"type": "browser"})
                  if entry["level"] == "SEVERE"]
        self.assertEqual([message for message in errors if " 401 " not in message], [])


if __name__ == "__main__":
    tools.main()
