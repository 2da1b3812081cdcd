#!/usr/bin/env python3
"""Saves configurations of every family with transformers' save_pretrained and counts parameters.

For every catalogue model, for every family's defaults and for small instances that use every flag,
transformers builds the configuration, saves it, loads what it saved, and builds the model on the
meta device (no memory, no weights, no network). The saved file and the number of parameters are the
golden files that tests/planner/model/saved_configs_test.cc reads. One file a major version:

    python3 -m venv venv4 && venv4/bin/pip install "transformers<5" torch
    python3 -m venv venv5 && venv5/bin/pip install "transformers>=5,<6" torch
    venv4/bin/python tests/golden/make_saved_configs.py > tests/golden/saved_configs_4.json
    venv5/bin/python tests/golden/make_saved_configs.py > tests/golden/saved_configs_5.json
"""

import json
import sys
import tempfile

import parameter_counts as counts
import torch
import transformers

# Keys of a saved file that say nothing about the model, or differ from run to run.
LEFT_OUT = ("transformers_version", "_name_or_path", "id2label", "label2id", "vision_config")


def cases():
    """Name and configuration of every model, as its author would write it."""
    for path in sorted(counts.CATALOGUE.glob("*.json")):
        yield path.stem, json.loads(path.read_text())
    for model_type in sorted(counts.CLASSES):
        config = {"model_type": model_type}
        if model_type == "gemma3":
            config["text_config"] = {"model_type": "gemma3_text"}
        if model_type == "deepseek_v2":  # its class has no default for it
            config["num_experts_per_tok"] = 6
        yield f"{model_type} defaults", config
    for case, model_type, config in counts.small_configs():
        yield f"small {case}", {"model_type": model_type, **config}


def saved(config):
    """What save_pretrained writes, and the model that from_pretrained and the class make of it."""
    model = counts.build(config)
    with tempfile.TemporaryDirectory() as folder:
        model.config.save_pretrained(folder)
        with open(f"{folder}/config.json", encoding="utf-8") as file:
            written = json.load(file)
        again = transformers.AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = type(model)(again)
    model.tie_weights()
    shapes = counts.tensors(model, config["model_type"])
    kept = {key: value for key, value in written.items() if key not in LEFT_OUT}
    return kept, sum(counts.elements(shape) for shape in shapes.values())


def main():
    lines = []
    for name, config in cases():
        written, parameters = saved(config)
        lines.append(f"    {json.dumps(name)}: "
                     + json.dumps({"parameters": parameters, "config": written}, sort_keys=True))
        print(f"{name:40} {parameters:>18,}", file=sys.stderr)
    made_by = f"transformers {transformers.__version__}, tests/golden/make_saved_configs.py"
    print('{\n  "made_by": ' + json.dumps(made_by) + ',\n  "models": {\n' + ",\n".join(lines) + "\n  }\n}")


if __name__ == "__main__":
    main()
