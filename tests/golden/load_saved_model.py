#!/usr/bin/env python3
"""Models trained here load in transformers and give the same logits.

    python3 -m venv venv && venv/bin/pip install transformers==5.23.0 torch==2.15.0
    cmake --build --preset dev --target shardwise shardwise-run stored_model_logits
    venv/bin/python tests/golden/load_saved_model.py [FOLDER OF THE PROGRAMS]

For a tiny GPT-2, Llama, Mistral, Qwen2 and Qwen3: plans two ranks of ZeRO-3, trains 20 steps, saves
the weights in files of 20 KB, in fp32 and in bf16, loads them in transformers without a tensor
missing or left over and in the type that they say, and prints the largest difference of a logit
(computed in fp32 there and here) as a share of the largest logit. Exit code 1 when one is above
TOLERANCE.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import make_transformer_golden as golden
import torch
import transformers

TOLERANCE = 1e-5
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def train(programs, name, dtype, folder):
    config = golden.CONFIGS[name] | {"model_type": name, "vocab_size": 256}
    (folder / "config.json").write_text(json.dumps(config))
    plan, saved = folder / "plan.json", folder / "saved"
    layout = "--lock zero_stage=3 --lock dp_shard=2 --engine shardwise --precision fp32"
    shape = "--sequence-length 24 --global-batch-size 4 --loss chunked --cluster laptop --gpus 2"
    for command in (
        [programs / "shardwise", "plan", "--model", folder / "config.json", "-o", plan]
        + layout.split()
        + shape.split(),
        [programs / "shardwise-run", plan, "--steps", "20", "--learning-rate", "0.01"]
        + ["--save-weights", saved, "--save-weights-dtype", dtype, "--max-shard-size", "20KB"],
    ):
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return saved


def difference(programs, dtype, saved):
    run = subprocess.run(
        [programs / "stored_model_logits", saved], cwd=ROOT, check=True, capture_output=True
    )
    ours = torch.tensor([float(line) for line in run.stdout.split()])
    model, loading = transformers.AutoModelForCausalLM.from_pretrained(
        saved, attn_implementation="eager", dtype=torch.float32, output_loading_info=True
    )
    wrong = {key: names for key, names in loading.items() if names}
    if wrong:
        sys.exit(f"{saved}: {wrong}")
    settings = transformers.AutoConfig.from_pretrained(saved)
    as_said = transformers.AutoModelForCausalLM.from_pretrained(saved, dtype="auto").dtype
    if as_said != {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]:
        sys.exit(f"{saved}: is loaded as {as_said}")
    shares = (golden.noise("tokens", golden.BATCH * golden.SEQUENCE) + 1) / 2
    inputs = torch.tensor((shares * settings.vocab_size).astype(int))
    with torch.no_grad():
        theirs = model.eval()(input_ids=inputs.reshape(golden.BATCH, golden.SEQUENCE)).logits
    return ((ours - theirs.reshape(-1)).abs().max() / theirs.abs().max()).item()


def main():
    programs = (ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build/dev/bin")).resolve()
    worst = 0.0
    for name in ("gpt2", "llama", "mistral", "qwen2", "qwen3"):
        for dtype in ("fp32", "bf16"):
            with tempfile.TemporaryDirectory() as scratch:
                saved = train(programs, name, dtype, pathlib.Path(scratch))
                each = difference(programs, dtype, saved)
            print(f"{name} {dtype}: {each:.1e}")
            worst = max(worst, each)
    print(f"transformers {transformers.__version__}, at most {worst:.1e} of {TOLERANCE:.0e}")
    sys.exit(worst > TOLERANCE)


main()
