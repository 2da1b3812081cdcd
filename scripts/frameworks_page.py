#!/usr/bin/env python3
"""Writes the tables of docs/frameworks.md from configs/frameworks/*.json and shared/*.json.

scripts/frameworks_page.py           write the page again
scripts/frameworks_page.py --check   exit code 1 where the page says something else than the files
"""

import ast
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "configs" / "frameworks"
ENGINES = ROOT / "configs" / "engines"
PAGE = ROOT / "docs" / "frameworks.md"
BEGIN = "<!-- written by scripts/frameworks_page.py from configs/frameworks -->\n"
ORDER = ["megatron-lm", "megatron-fsdp", "torchtitan", "torch-fsdp2", "accelerate", "deepspeed"]
KINDS = {"refused": "refused", "changed": "changed", "silent": "**silent**"}


def cell(value):
    return str(value).replace("|", "\\|").replace("_", "\\_").replace("*", "\\*")


def code(value):
    return f"`{value}`"


def default_of(setting, form):
    """A setting of our scripts must be there: settings.json has each."""
    if setting.get("default") is None:
        return "must be there" if form == "script" else "off" if setting["kind"] == "on" else "none"
    value = setting["default"]
    return code(str(value).lower() if isinstance(value, bool) else value)


def value_of(text):
    """A value of a limit: "@dp" is that of the field dp."""
    if text.startswith("@"):
        return f"that of {code(text[1:])}"
    return code(text) if text else "none"

def own_list(text):
    """Of a limit whose value is a list that the model decides."""
    return "its own list for the model" if text == "@model.selective_operations" else value_of(text)


def settings_table(framework):
    lines = ["| setting | default | plan field | what it sets | source |", "|---|---|---|---|---|"]
    for each in framework["settings"]:
        field = code(each["field"]) if "field" in each else ""
        if each.get("only_read"):
            field += " (read)"
        lines.append(
            f"| {code(each['name'])} | {default_of(each, framework['form'])} | {field} "
            f"| {cell(each.get('meaning', ''))} | {cell(each['source'])} |"
        )
    return lines


def calls_tables(framework):
    """Arguments of the functions that the training script calls, with what it gives."""
    lines = []
    calls = json.loads((CONFIGS / "shared" / "calls.json").read_text())
    for call in calls.get(framework["name"], []):
        lines += [
            f"Arguments of `{call['function']}`:",
            "",
            "| argument | default | what the script gives | source |",
            "|---|---|---|---|",
        ]
        for each in call["arguments"]:
            default = code(each["default"]) if "default" in each else "must be there"
            given = cell(each.get("given", "its default"))
            lines.append(f"| {code(each['name'])} | {default} | {given} | {cell(each['source'])} |")
        lines.append("")
    return lines


def refused_at(engines, rule):
    """Where the first of the engines that refuses what a layout rule refuses does."""
    places = json.loads((ENGINES / "refusals.json").read_text())["rules"][rule]
    return next(p["at"] for engine in engines for p in places if engine in p["engines"])


def source_of(rule, framework):
    if "layout_rule" in rule:
        return refused_at(framework["engines"], rule["layout_rule"])
    return rule["source"]


def rules_table(framework):
    lines = ["| check | | of | what is wrong | what is right | source |", "|---|---|---|---|---|---|"]
    for each in framework["rules"]:
        lines.append(
            f"| {cell(each['name'])} | {KINDS[each['kind']]} | {code(each['at'])} "
            f"| {cell(each['says'])} | {cell(each['fix'])} | {cell(source_of(each, framework))} |"
        )
    return lines


def limits_table(framework):
    lines = ["| plan field | what is exported | why |", "|---|---|---|"]
    shared = json.loads((CONFIGS / "shared" / "limits.json").read_text())
    lists = [framework["limits"], *(shared[name] for name in framework["shares"])]
    for each in [limit for limits in lists for limit in limits]:
        if "because" not in each:
            continue
        values = ", ".join(own_list(v) for v in each["values"])
        when = "; ".join(f"{name} {shown(value)}" for name, value in each.get("when", {}).items())
        lines.append(
            f"| {code(each['field'])}{' with ' + cell(when) if when else ''} | {values} "
            f"| {cell(each['because'])} |"
        )
    for each in framework.get("refusals", []):
        when = "; ".join(f"{name} {shown(value)}" for name, value in each["when"].items())
        lines.append(f"| {cell(when)} | refused | {cell(each['because'])} |")
    for each in framework.get("by_script", []):
        lines.append(f"| {code(each['field'])} | by the script | {cell(each['says'])} |")
    return lines


def shown(value):
    if isinstance(value, dict):
        (word, what), = value.items()
        return f"{word} {shown(what)}"
    if isinstance(value, list):
        return " or ".join(str(v) or "none" for v in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def section(framework):
    lines = [
        f"## {framework['label']}",
        "",
        f"`--to {framework['name']}`. Read from {framework['code']}, version {framework['version']}.",
        "",
        f"Engines of its plans, the first where a plan has another: "
        f"{', '.join(code(e) for e in framework['engines'])}.",
        "",
        *settings_table(framework),
        "",
        *calls_tables(framework),
        "Not expressible:",
        "",
        *limits_table(framework),
        "",
        "What contradicts itself:",
        "",
        *rules_table(framework),
        "",
    ]
    return lines


def tables():
    lines = []
    for name in ORDER:
        lines += section(json.loads((CONFIGS / f"{name}.json").read_text()))
    return "\n".join(lines)


def wrong_lines():
    """Sources in our own scripts whose line does not read the setting."""
    wrong = []
    for name in ORDER:
        framework = json.loads((CONFIGS / f"{name}.json").read_text())
        for each in framework["settings"]:
            file, _, line = each["source"].partition(":")
            key = each["name"].rpartition(".")[2]
            if not (CONFIGS / file).is_file() or "." not in each["name"]:
                continue
            lines = (CONFIGS / file).read_text().split("\n")
            if not line or f'["{key}"]' not in lines[int(line) - 1]:
                wrong.append(f"{name}.json: {each['name']} is not read at {each['source']}")
    return wrong


def given_to(function, script):
    """Keywords of the calls of a function, with those of a dictionary behind "**"."""
    tree = ast.parse(script)
    keys = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            keys[ast.unparse(node.targets[0])] = [ast.literal_eval(k) for k in node.value.keys]
    given = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
            for each in node.keywords:
                given.update([each.arg] if each.arg else keys[ast.unparse(each.value)])
    return given


def wrong_calls():
    """Arguments that a script gives and the table does not, or the other way."""
    wrong = []
    all_calls = json.loads((CONFIGS / "shared" / "calls.json").read_text())
    for name, calls in all_calls.items():
        if name == "schema":
            continue
        program = json.loads((CONFIGS / f"{name}.json").read_text())["program"]
        script = (CONFIGS / program).read_text()
        for call in calls:
            told = {a["name"] for a in call["arguments"] if "default" in a and "given" in a}
            apart = told ^ given_to(call["function"], script)
            wrong += [f"calls.json: {call['function']}: {each}: not as in {program}"
                      for each in sorted(apart)]  # fmt: skip
    return wrong


def main():
    page = PAGE.read_text()
    head, _, _ = page.partition(BEGIN)
    made = head + BEGIN + "\n" + tables()
    if "--check" in sys.argv[1:]:
        if wrong := wrong_lines() + wrong_calls():
            sys.exit("\n".join(wrong))
        if made != page:
            sys.exit("docs/frameworks.md is not what configs/frameworks say: "
                     "run scripts/frameworks_page.py")  # fmt: skip
        return
    PAGE.write_text(made)


if __name__ == "__main__":
    main()
