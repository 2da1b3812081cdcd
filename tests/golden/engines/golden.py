"""Writes the goldens of the makers beside this file: one case a line."""

import json
import sys


def compress(values):
    """Runs of the same numbers as [times, [numbers]]: [7, 5, 6, 5, 6] is [7, [2, [5, 6]]]."""
    out, i = [], 0
    while i < len(values):
        best = (0, 1, 1)
        for length in range(1, min(12, (len(values) - i) // 2) + 1):
            times = 1
            part = values[i:i + length]
            while values[i + times * length:i + (times + 1) * length] == part:
                times += 1
            saved = (times - 1) * length
            if times > 1 and saved > best[0]:
                best = (saved, length, times)
        saved, length, times = best
        if saved > 1:
            out.append([times, values[i:i + length]])
            i += length * times
        else:
            out.append(values[i])
            i += 1
    return out


def chosen(name):
    """Whether a maker runs the case: with --only=WORDS those whose name has the words."""
    return all(word[7:] in name for word in sys.argv if word.startswith("--only="))


def dump(made_by, versions, models, cases):
    """Prints the file; `models` are the shapes by name, `cases` the list of results."""
    line = lambda value: json.dumps(value, separators=(",", ":"))
    used = {case["model"] for case in cases}
    out = ["{", f'  "made_by": {line(made_by)},', f'  "versions": {line(versions)},',
           '  "models": {']
    shapes = [f"    {line(name)}: {line(model)}" for name, model in models.items() if name in used]
    out += [",\n".join(shapes), "  },", '  "cases": [']
    out += [",\n".join("    " + line(case) for case in cases), "  ]", "}"]
    text = "\n".join(out) + "\n"
    print(f"{len(cases)} cases, {len(text)} bytes", file=sys.stderr)
    sys.stdout.write(text)
