#!/usr/bin/env python3
"""A checkpoint of the GPU resumed on the CPU, and back: the weights are the same bits, and the curve continues."""
import shutil

import check
import training

STEPS = 4


def weights(part, name, plan_path, device, words):
    folder = part.work / f"{name}.weights"
    shutil.rmtree(folder, ignore_errors=True)
    training.train(part, name, plan_path, device, words=["--save-weights", folder, *words], steps=STEPS)
    return training.tensors(folder)


def there_and_back(part, precision, begins, resumes):
    """Trained on one device; the other resumes after the last step, which trains nothing, and saves what it read."""
    plans = {device: training.plan(part, f"{precision}-{device}", "gpt2-tiny", device=device, precision=precision, dp_shard=1)
             for device in ("cuda", "cpu")}
    folder = part.work / f"{precision}-{begins}.checkpoints"
    shutil.rmtree(folder, ignore_errors=True)
    trained = weights(part, f"{precision}-{begins}", plans[begins], begins, ["--checkpoint-dir", folder])
    name = f"{precision}-{begins}-then-{resumes}"
    out = part.work / f"{name}.weights"
    shutil.rmtree(out, ignore_errors=True)
    part.must(part.program("shardwise-run"), "train", plans[resumes], "--steps", STEPS, "--checkpoint-dir", folder, "--resume",
              "latest", "--save-weights", out, *training.words_of(resumes), limit=200)
    read = training.tensors(out)
    unequal = [key for key in trained if trained[key] != read.get(key)]
    row = {"ok": not unequal and trained.keys() == read.keys(), "tensors": len(trained), "unequal": unequal[:5]}
    if not row["ok"]:
        row["why"] = f"{len(unequal)} of {len(trained)} tensors differ"
        return row
    # One step more on each: moments, step and data were resumed too.
    more = {device: training.train(part, f"{name}-{device}", plans[device], device, STEPS + 1,
                                   ["--checkpoint-dir", copied(part, folder, device), "--resume", "latest"])
            for device in ("cuda", "cpu")}
    far = training.largest_difference(more["cuda"].losses, more["cpu"].losses)
    row.update(next_loss=far, ok=far <= (1e-4 if precision == "fp32" else 1e-2))
    if not row["ok"]:
        row["why"] = f"the next step's loss is {far:.2g} away from the CPU's"
    return row


def copied(part, folder, device):
    to = part.work / f"{folder.name}.{device}"
    shutil.rmtree(to, ignore_errors=True)
    return shutil.copytree(folder, to)


def main():
    part = check.Part("checkpoints")
    every = [(precision, *ways) for precision in ("fp32", "bf16") for ways in (("cuda", "cpu"), ("cpu", "cuda"))]
    part.plan([f"{precision} {begins} then {resumes}" for precision, begins, resumes in every])
    for precision, begins, resumes in every:
        part.case(f"{precision} {begins} then {resumes}", there_and_back, part, precision, begins, resumes)
    part.finish()


if __name__ == "__main__":
    main()
