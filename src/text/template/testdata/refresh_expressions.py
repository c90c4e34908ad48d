#!/usr/bin/env python3
"""Renders the sources of expressions.json again with Python's jinja2 and writes what it says.

The environment is the one that Hugging Face's chat templates are rendered in. To add a case, add
an entry with its source and run this. Needs jinja2 3.1."""
import json
import pathlib
from datetime import datetime

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime(2026, 3, 14, 15, 9, 26)
# Errors whose sentence is Jinja's or the template's, not Python's.
EXACT = (jinja2.exceptions.UndefinedError, jinja2.exceptions.SecurityError)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_run"), [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def make_environment():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    return environment


def render(environment, source, variables):
    try:
        return {"source": source, "text": environment.from_string(source).render(**variables)}
    except Exception as error:  # pylint: disable=broad-except
        exact = isinstance(error, EXACT) or type(error) is jinja2.exceptions.TemplateError
        return {"source": source, "error": str(error), "exact": exact}


def main():
    path = pathlib.Path(__file__).with_name("expressions.json")
    data = json.loads(path.read_text())
    environment = make_environment()
    cases = [render(environment, case["source"], data["variables"]) for case in data["cases"]]
    lines = [json.dumps(case, ensure_ascii=False) for case in cases]
    variables = json.dumps(data["variables"], ensure_ascii=False)
    path.write_text('{"variables": %s,\n"cases": [\n%s\n]}\n' % (variables, ",\n".join(lines)))
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
