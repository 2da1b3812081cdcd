#!/usr/bin/env python3
"""Asks the frameworks' own parsers which values each setting takes.

Each setting that `shardwise check` reads is given what people write by mistake beside what is right:
null, texts for numbers, exponents, words behind switches, names that there are not. What the parser
takes and check refuses is "stricter", the other way "looser"; a test holds all four lists. Of
Megatron-LM the parser of its arguments is asked and not what validates them together, which the
rules' examples show. No GPU is needed; packages as for frameworks.py.

    venv/bin/python tests/golden/framework_values.py --shardwise build/dev/bin/shardwise \\
        --megatron Megatron-LM > tests/golden/framework_values.json
"""

import argparse
import concurrent.futures
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

import frameworks

RANKS = 8
# The other thread changes variables while programs start.
STARTED_WITH = dict(os.environ)
# By kind of the setting; None is a switch without a word behind it.
WORDS = {
    "integer": ["2", "1e3", "2.0", "text", "0", "+2", "1_0", "None"],
    "number": ["1", "1e3", "0.5", "text", "1.", "None"],
    "boolean": [None, "true", "False", "1"],
    "on": [None, "true", "1"],
    "text": ["text", "None"],
    "texts": ["text"],
}
# By whether the framework's parser takes a value, and whether check does.
LISTS = {
    (True, True): "takes",
    (False, False): "refuses",
    (True, False): "stricter",
    (False, True): "looser",
}
KEYS = [None, "text", "2", "5e8", "true", True, 1, 0, -1, 2.0, 0.5, 5e8, [], {}, [1]]


class Arguments:
    """The parser of Megatron-LM's arguments alone."""

    base = (
        "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
        "--max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --bf16"
    ).split()

    def __init__(self, megatron):
        self.parser = frameworks.Megatron(megatron)

    def take(self, words):
        with frameworks.environment({"WORLD_SIZE": str(RANKS), "RANK": "0"}):
            sys.argv = ["pretrain_gpt.py", *words]
            self.parser.arguments.parse_args()


class Overrides:
    """torchtitan's command line."""

    base = "--module llama3 --config llama3_8b --training.local_batch_size 2".split()

    def __init__(self):
        self.parser = frameworks.Titan()

    def take(self, words):
        self.parser.parse(words, RANKS)


class Keys:
    """DeepSpeed's JSON."""

    base = {
        "train_batch_size": 16,
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 3},
        "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}},
    }

    def __init__(self, folder):
        self.parser, self.file = frameworks.DeepSpeed(), folder / "asked.json"

    def take(self, keys):
        self.file.write_text(json.dumps(keys))
        self.parser.parse(self.file, RANKS)


class Yaml:
    """accelerate's YAML, as `accelerate launch` reads it and its ranks are told."""

    base = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "FSDP",
        "mixed_precision": "bf16",
        "num_machines": 1,
        "num_processes": RANKS,
        "fsdp_config": {
            "fsdp_version": 2,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        },
    }

    def __init__(self, folder):
        self.parser, self.file = frameworks.Accelerate(), folder / "asked.yaml"

    def take(self, keys):
        self.file.write_text(json.dumps(keys))  # JSON is YAML, but for 5e8
        self.parser.parse(self.file)


def with_words(base, name, value):
    words = list(base)
    if name in words:
        at = words.index(name)
        del words[at : at + 2]
    return words + [name] + ([] if value is None else [value])


def with_key(base, name, value):
    keys = json.loads(json.dumps(base))
    inner = keys
    *path, last = name.split(".")
    for each in path:
        inner = inner.setdefault(each, {})
    inner[last] = value
    return keys


def is_taken(parser, asked):
    def take():
        parser.take(asked)
        return {}

    return not isinstance(frameworks.said_by(take), str)


def is_checked(shardwise, framework, asked, file):
    """Whether check finds nothing that the framework refuses."""
    command = [shardwise, "check", "--from", framework]
    if framework != "accelerate":  # whose YAML states them
        command += ["--gpus", str(RANKS)]
    if isinstance(asked, dict):
        file.write_text(json.dumps(asked))
        command.append(file)
    else:
        command += ["--", *asked]
    done = subprocess.run(command, capture_output=True, text=True, env=STARTED_WITH)
    return done.returncode != 2 and "refused by" not in done.stdout


def asked_of(framework, settings):
    for setting in settings:
        if setting.get("place", "configuration") != "configuration":
            continue
        if framework in ("deepspeed", "accelerate"):
            own = [str(RANKS), RANKS, *setting.get("among", [])] if framework == "accelerate" else []
            # A YAML with that is one of DeepSpeed.
            yield setting, KEYS + [value for value in own if value != "DEEPSPEED"]
        elif setting["name"].startswith("--"):
            yield setting, WORDS[setting["kind"]] + setting.get("among", [])


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--shardwise", type=pathlib.Path, required=True)
    options.add_argument("--megatron", type=pathlib.Path, required=True, help="a clone of it")
    given = options.parse_args()
    logging.disable()  # what parsers warn of
    out = {"schema": "shardwise.framework_values/1", "frameworks": []}
    with tempfile.TemporaryDirectory() as made, concurrent.futures.ThreadPoolExecutor() as pool:
        folder = pathlib.Path(made)
        for framework, parser, put in (
            ("megatron-lm", Arguments(given.megatron), with_words),
            ("torchtitan", Overrides(), with_words),
            ("deepspeed", Keys(folder), with_key),
            ("accelerate", Yaml(folder), with_key),
        ):
            file = frameworks.ROOT / f"configs/frameworks/{framework}.json"
            table = json.loads(file.read_text())
            rows = []
            for setting, values in asked_of(framework, table["settings"]):
                row = {"setting": setting["name"], **{each: [] for each in LISTS.values()}}
                forms = [put(parser.base, setting["name"], value) for value in values]
                checked = pool.map(
                    lambda at: is_checked(
                        given.shardwise, framework, forms[at], folder / f"checked{at}.json"
                    ),
                    range(len(forms)),
                )
                for value, form, ours in zip(values, forms, checked):
                    row[LISTS[is_taken(parser, form), ours]].append(value)
                rows.append(row)
            out["frameworks"].append({"name": framework, "base": parser.base, "settings": rows})
    # A line each: a change is seen where it is.
    text = json.dumps(out, indent=None)
    for head in ('{"setting"', '{"name"'):
        text = text.replace(head, "\n" + head).replace(", \n", ",\n")
    print(text)


if __name__ == "__main__":
    main()
