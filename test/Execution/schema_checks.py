"""A check that schemathesis makes of each reply (serve_schema_test.py): what the schema allows is accepted.

It stands in for the package's own positive_data_acceptance, which knows no exceptions. Schemas cannot say how many tokens a text
has, which name the served model has, or where its vocabulary ends; and 1.0 is an integer for them, which the server wants
to be written as 1. Such requests may be refused, and no others."""

import schemathesis


def has_whole_float(value):
    if isinstance(value, dict):
        return any(map(has_whole_float, value.values()))
    if isinstance(value, list):
        return any(map(has_whole_float, value))
    return isinstance(value, float) and value.is_integer()


def may_be_refused(status, error, body):
    code, param = error["code"], error["param"]
    if status == 404:
        return code == "model_not_found"
    if code == "invalid_type":
        return has_whole_float(body)
    if code == "invalid_value":
        return param == "prompt" and error["message"].startswith("the vocabulary has no token ")
    return status == 429 or (code == "context_length_exceeded" and param in ("messages", "prompt"))


@schemathesis.check
def valid_requests_are_accepted(_context, response, case):
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code < 400:
        return
    error = response.json()["error"]
    assert may_be_refused(response.status_code, error, case.body), error
