#!/usr/bin/env python3
"""Imports the launch commands of Megatron-LM's own functional tests, and compares the layouts.

Each model_config.yaml there becomes a torchrun command. What `shardwise check` finds refused in a
training is printed: arguments of other programs than pretrain_gpt.py, and settings that Megatron's
own code asserts against. Of a dense decoder's training `shardwise import` must give
the degrees, batch, strategy and recompute that the file states. The model is a config.json of the
stated sizes or, where that is of another model, the one that the command describes. What is not
imported is counted apart, with the reason.

    git clone the repository NVIDIA/Megatron-LM, commit d98e8a64
    pip install PyYAML
    tests/golden/published_commands.py --shardwise build/dev/bin/shardwise --megatron Megatron-LM

Exit code 1 where a layout differs.
"""

import argparse
import collections
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import yaml

STRATEGIES = ["no_shard", "optim", "optim_grads", "optim_grads_params"]
# Of a model that is no decoder of equal dense blocks.
OTHER_KINDS = {"--num-experts", "--multi-latent-attention", "--hybrid-layer-pattern",
               "--hybrid-override-pattern", "--mtp-num-layers", "--img-h", "--encoder-num-layers",
               "--decoder-seq-length"}  # fmt: skip


def trains(args):
    return any(f"--{word}" in args for word in ("train-iters", "train-samples", "exit-interval"))


def model_of(args):
    """A config.json of the sizes, or None where the file is of no training or of another model."""
    sizes = ("--num-layers", "--hidden-size", "--num-attention-heads")
    if not trains(args) or not all(size in args for size in sizes) or OTHER_KINDS & args.keys():
        return None
    layers, hidden, heads = (int(args[size]) for size in sizes)
    positions = int(args.get("--max-position-embeddings", 4096))
    if not args.get("--swiglu"):
        return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": hidden,
                "n_layer": layers, "n_head": heads, "n_positions": positions,
                "vocab_size": 50257, "activation_function": "gelu_new"}  # fmt: skip
    groups = int(args.get("--num-query-groups", heads)) if args.get("--group-query-attention") else heads
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": hidden,
            "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": groups, "vocab_size": 32000, "hidden_act": "silu",
            "intermediate_size": int(args.get("--ffn-hidden-size", 8 * hidden // 3)),
            "max_position_embeddings": positions,
            "rms_norm_eps": float(args.get("--norm-epsilon", 1e-5)),
            "tie_word_embeddings": not args.get("--untie-embeddings-and-output-weights", False),
            "head_dim": int(args.get("--kv-channels", hidden // heads))}  # fmt: skip


def command_of(args):
    """The words of the command, on as few whole nodes as the degrees need, and the layout stated."""
    degree = lambda name: int(args.get(f"--{name}-parallel-size", 1))
    tp, pp, cp = map(degree, ("tensor-model", "pipeline-model", "context"))
    experts = degree("expert-model") * int(args.get("--expert-tensor-parallel-size", tp)) * pp
    nodes = 1
    while 8 * nodes % (tp * pp * cp) != 0 or "--num-experts" in args and 8 * nodes % experts != 0:
        nodes += 1
    words = ["torchrun", "--nproc-per-node", "8", "--nnodes", str(nodes), "pretrain_gpt.py"]
    for name, value in args.items():
        if value is False or value is None:
            continue
        text, several = str(value), False
        if text.startswith("[") and text.endswith("]"):  # as their script does
            text, several = text[1:-1], True
        parts = shlex.split(text)
        if value is True:
            words.append(name)
        else:  # a value with spaces is one word there
            words += [name, *parts] if several else [name, " ".join(parts)]
    stage = 1 if args.get("--use-distributed-optimizer") else 0
    if args.get("--use-megatron-fsdp"):
        stage = STRATEGIES.index(args.get("--data-parallel-sharding-strategy", STRATEGIES[-1]))
    if args.get("--use-torch-fsdp2"):
        stage = 3
    stated = {"tp": tp, "pp": pp, "cp": cp, "zero_stage": stage,
              "micro_batch_size": int(args.get("--micro-batch-size", 1)),
              "recompute": args.get("--recompute-granularity") or "none"}  # fmt: skip
    if "--global-batch-size" in args:
        stated["global_batch_size"] = int(args["--global-batch-size"])
    return words, stated


def write_script(words, variables, file):
    quoted = " ".join(word if word.startswith("$") else shlex.quote(word) for word in words)
    exports = "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in variables.items())
    file.write_text(f"{exports}{quoted}\n")


def refused(shardwise, file):
    """What check says that Megatron-LM refuses."""
    done = subprocess.run([shardwise, "check", file, "--from", "megatron-lm"], capture_output=True, text=True)
    if done.stderr.startswith(str(file)):
        return [done.stderr.split("\n")[0]]
    lines = done.stdout.split("\n")
    return [lines[at - 2] for at, line in enumerate(lines) if line.strip().startswith("refused by")]


def imported(shardwise, args, folder):
    """"same", or what is wrong."""
    words, stated = command_of(args)
    (folder / "config.json").write_text(json.dumps(model_of(args)))
    write_script(words, {}, folder / "job.sh")
    command = [shardwise, "import", folder / "job.sh", "--from", "megatron-lm", "--cluster",
               "dgx-h100", "-o", folder / "plan.json"]  # fmt: skip
    done = subprocess.run([*command, "--model", folder / "config.json"], capture_output=True, text=True)
    if done.returncode != 0:  # of another model, which the command describes
        vocabulary = [] if "--vocab-size" in args else ["--vocab-size", "50257"]
        write_script([*words, *vocabulary], {}, folder / "job.sh")
        described = subprocess.run(command, capture_output=True, text=True)
        done = described if described.returncode == 0 else done
    if done.returncode != 0:
        problem = re.search(r"--[\w-]+: .*", done.stderr)
        return f"not imported: {problem.group() if problem else done.stderr}"
    plan = json.loads((folder / "plan.json").read_text())
    if plan["job"].get("recompute_operations"):
        stated["recompute"] = plan["layout"]["recompute"]
    found = {**plan["job"], **plan["layout"]}
    wrong = [f"{key} {found[key]}, not {value}" for key, value in stated.items() if found[key] != value]
    return f"differs: {', '.join(wrong)}" if wrong else "same"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shardwise", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--megatron", required=True, type=pathlib.Path)
    asked = parser.parse_args()
    counted = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(asked.megatron.glob("tests/functional_tests/test_cases/*/*/model_config.yaml")):
            test = yaml.safe_load(file.read_text())
            args = test.get("MODEL_ARGS") or {}
            script = pathlib.Path(folder) / "checked.sh"
            write_script(command_of(args)[0], test.get("ENV_VARS") or {}, script)
            findings = refused(asked.shardwise, script) if trains(args) else []
            counted["trainings in which check finds something refused"] += bool(findings)
            counted["trainings"] += trains(args)
            for finding in findings:
                print(f"{file.parent.name}: check: {finding.removeprefix(str(script))}")
            result = "no training of a dense decoder"
            if model_of(args) is not None:
                result = imported(asked.shardwise, args, pathlib.Path(folder))
            counted[result.split(":")[0]] += 1
            if ":" in result:
                print(f"{file.parent.name}: {result}")
    for result, count in sorted(counted.items()):
        print(f"{count:4} {result}")
    sys.exit(1 if counted["differs"] else 0)


if __name__ == "__main__":
    main()
