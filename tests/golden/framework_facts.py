#!/usr/bin/env python3
"""Compares the facts of configs/frameworks with the code that they were read from.

For each setting and each argument of a function it says where the line of its source does not have
its name, and for Megatron-LM and the functions where the default is another one.

    python3.12 -m venv venv
    venv/bin/pip install torch==2.15.0 transformers==5.23.0 accelerate==1.15.0 deepspeed==0.19.8 \\
        torchtitan==0.3.0 einops
    venv/bin/pip install --no-deps megatron-fsdp==0.6.1
    git clone the repository NVIDIA/Megatron-LM, commit d98e8a64
    venv/bin/python tests/golden/framework_facts.py --megatron Megatron-LM

needs no GPU. Exit code 1 where a default differs or a source has no such line. A name that is not
on its line is printed alone: code reads some settings under another name.
"""

import argparse
import contextlib
import importlib
import inspect
import io
import json
import pathlib
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs" / "frameworks"
PACKAGES = pathlib.Path(sysconfig.get_paths()["purelib"])
# Of these the table has what the framework makes of None.
OF_NONE = {
    "--num-virtual-stages-per-pipeline-rank", "--decoder-first-pipeline-num-layers",
    "--decoder-last-pipeline-num-layers", "--sharp-enabled-group", "--recompute-modules",
    "--num-experts", "--mtp-num-layers",
}  # fmt: skip
CALLS = {
    "fully_shard": ("torch.distributed.fsdp", "fully_shard"),
    "fully_shard_model": ("megatron_fsdp", "fully_shard_model"),
}


def lines_of(source, megatron):
    """The text around the line of a source; None where it is nowhere on this machine."""
    path, _, line = source.partition(":")
    if not line.isdigit():
        return None
    for folder in (CONFIGS, megatron, PACKAGES):
        if (folder / path).is_file():
            text = (folder / path).read_text().split("\n")
            number = int(line)
            return "\n".join(text[max(number - 2, 0) : number + 2]) if number <= len(text) else ""
    return None


def plain(name):
    return name.rpartition(".")[2].strip("-").replace("-", "_").lower()


def calls_of(framework):
    """The functions that a training script calls."""
    calls = json.loads((CONFIGS / "shared" / "calls.json").read_text())
    return calls.get(framework["name"], [])


def rows_of(framework):
    yield from ((each["name"], each["source"]) for each in framework["settings"])
    for call in calls_of(framework):
        yield from ((each["name"], each["source"]) for each in call["arguments"])


def compare_sources(framework, megatron):
    wrong = 0
    for name, source in rows_of(framework):
        text = lines_of(source, megatron)
        if text == "":
            wrong += 1
            print(f"{framework['name']}: {name}: no line {source}")
        elif text is not None and plain(name) not in text.replace("-", "_").lower():
            print(f"{framework['name']}: {name} is not at {source}")
    return wrong


def compare_calls(framework):
    wrong = 0
    for call in calls_of(framework):
        if call["function"] not in CALLS:
            continue
        module, function = CALLS[call["function"]]
        found = inspect.signature(getattr(importlib.import_module(module), function)).parameters
        if list(found) != [each["name"] for each in call["arguments"]]:
            wrong += 1
            print(f"{call['function']} has the arguments {', '.join(found)}")
            continue
        for each in call["arguments"]:
            default = found[each["name"]].default
            stated = each.get("default")
            made_anew = stated is not None and stated.endswith("()")
            if made_anew or (default is inspect.Parameter.empty and stated is None):
                continue
            if str(default) != stated:
                wrong += 1
                print(f"{call['function']}: {each['name']} is {default} by default, not {stated}")
    return wrong


def megatron_actions(megatron):
    """The arguments of Megatron-LM's parser, by name."""
    sys.path.insert(0, str(ROOT / "tests" / "golden"))
    import frameworks

    parser, made = frameworks.Megatron(megatron), []
    parse = argparse.ArgumentParser.parse_args

    def keep(self, *words, **options):
        made.append(self)
        return parse(self, *words, **options)

    argparse.ArgumentParser.parse_args = keep
    words = ("--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
             "--max-position-embeddings 64 --micro-batch-size 1")  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        parser.parse(words.split(), 1, {})
    argparse.ArgumentParser.parse_args = parse
    return {name: action for action in made[-1]._actions for name in action.option_strings}


def compare_defaults(framework, megatron):
    wrong = 0
    actions = megatron_actions(megatron)
    for each in framework["settings"]:
        action = actions.get(each["name"])
        if action is None or each["kind"] == "on" or each["name"] in OF_NONE:
            continue
        default = action.default[0] if isinstance(action.default, list) else action.default
        default, stated = getattr(default, "name", default), each.get("default")
        if default != stated and str(default).lower() != str(stated).lower():
            wrong += 1
            print(f"{each['name']} is {default} by default, not {stated}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megatron", required=True, type=lambda p: pathlib.Path(p).resolve())
    asked = parser.parse_args()
    wrong = 0
    for path in sorted(CONFIGS.glob("*.json")):
        framework = json.loads(path.read_text())
        wrong += compare_sources(framework, asked.megatron) + compare_calls(framework)
        if framework["name"] == "megatron-lm":
            wrong += compare_defaults(framework, asked.megatron)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
