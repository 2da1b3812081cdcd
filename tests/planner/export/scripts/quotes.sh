#!/bin/bash
NL=$'\n'
TAB=$'a\tb'
JSON='{"lr": 1e-4, "betas": [0.9, 0.95]}'
PROMPT="He said \"hi\" for \$5 and \\ \`date\`"
torchrun --nproc_per_node 8 train.py --tab "$TAB" --json "$JSON" --inline "{\"a\": ${N:-1}}" \
  --prompt "$PROMPT" --single 'it'"'"'s' --ansi $'it\'s' --join a"b"'c'$'d' --empty "" '' \
  --unicode $'\u00e9' --octal $'\101' --plain $"hello" --escaped a\ b\"c --dollar $ --pct 50% \
  --eq=x=y --tilde-free x~y --many {1..3} --pairs={a,b}{1,2}
