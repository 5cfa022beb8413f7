"""Hooks of schemathesis: which key and which model a request names, and which answers each operation gave."""

import atexit
import json
import os
import zlib

import schemathesis

KEYS = json.loads(os.environ["HEADGATE_KEYS"])
MODEL = os.environ["HEADGATE_MODEL"]
TALLY = os.environ["HEADGATE_TALLY"]

answers = {}


def number(case):
    """Of a call it follows from the content: the same request has the same answer. Look-ups have little content, so theirs follows from their order."""
    if case.method != "POST":
        return sum(answers.get(case.operation.label, {}).values())
    return zlib.crc32(repr(case.body).encode("utf-8", "replace"))


@schemathesis.hook
def before_call(context, case, **kwargs):
    """A random name is that of no model, and a call of it ends early: most requests name the model that is there. Few random requests ask for a stream."""
    chosen = number(case)
    if isinstance(case.body, dict):
        case.body.pop("N", None)  # a key that differs from `n` only in case is refused, and the document has no words for that
    case.headers["Authorization"] = "Bearer " + KEYS[chosen % len(KEYS)]
    if isinstance(case.body, dict) and isinstance(case.body.get("model"), str) and case.body["model"] and chosen % 7 > 0:
        case.body["model"] = MODEL
    if case.operation.path.endswith("/messages") and isinstance(case.body, dict) and isinstance(case.body.get("stream", False), bool) and chosen % 3 == 0:
        case.body["stream"] = True
    if "id" in case.path_parameters and chosen % 4 > 0:
        case.path_parameters["id"] = MODEL


@schemathesis.hook
def after_call(context, case, response):
    of_operation = answers.setdefault(case.operation.label, {})
    of_operation[response.status_code] = of_operation.get(response.status_code, 0) + 1


@atexit.register
def write():
    with open(TALLY, "w", encoding="utf-8") as file:
        json.dump(answers, file)
