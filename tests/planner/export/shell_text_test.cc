// Scripts, as bash reads them. Each expectation was asked of bash 5.2.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/export/shell/shell_text.h"
#include "tests/planner/export/shell_reading.h"

namespace shardwise {
namespace {

using test::notes_of;
using test::problem_of;
using test::read;
using test::texts_of;
using test::words_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ShellText, FillsInDefaultsWithQuotesInQuotes) {
  EXPECT_THAT(words_of("run \"${N:-\"value\"}\""), ElementsAre("value"));
  EXPECT_THAT(words_of("run ${N:-'a value'}"), ElementsAre("a value"));
  EXPECT_THAT(words_of("run ${N:-a value}"), ElementsAre("a", "value"));
  EXPECT_THAT(words_of("run \"${N:-a value}\""), ElementsAre("a value"));
  EXPECT_THAT(words_of("run \"${N:-'v'}\""), ElementsAre("'v'"));
  EXPECT_THAT(words_of("DEF=7\nrun \"${D:-$DEF}\" ${D:-${X:-${DEF}}}"), ElementsAre("7", "7"));
  EXPECT_THAT(words_of("run ${1:-\"x\"}"), ElementsAre("x"));
  EXPECT_THAT(words_of("E=\"\"; run ${E:-5} ${E-5} \"${E-5}\""), ElementsAre("5", ""));
  EXPECT_THAT(words_of("A=1; run ${A:+--on} ${B:+--off} ${A:-2}"), ElementsAre("--on", "1"));
  EXPECT_THAT(words_of(": ${N:=8}\nrun $N"), ElementsAre("8"));
  EXPECT_THAT(words_of("run ${DIR:-/a/$(date)/b} x"), ElementsAre("/a/$(date)/b", "x"));
}

TEST(ShellText, KeepsBackslashesAndSpacesInDoubleQuotes) {
  EXPECT_THAT(words_of("run \"a\\nb\" \"\\$5\" \"\\\"\" a\\ b 'c\\d'"),
              ElementsAre("a\\nb", "$5", "\"", "a b", "c\\d"));
  EXPECT_THAT(words_of("N='a  b'\nrun \"$N\" $N \"x${N}\""),
              ElementsAre("a  b", "a", "b", "xa  b"));
  EXPECT_THAT(words_of("run \"a\\\nb\" c\\\nd"), ElementsAre("ab", "cd"));
}

TEST(ShellText, SplitsArraysWithoutQuotesOnly) {
  const std::string args = "TP=2\nARGS=( \"--tp $TP\" \"--lr 1e-4\" )\n";
  EXPECT_THAT(words_of(args + "run ${ARGS[@]}"), ElementsAre("--tp", "2", "--lr", "1e-4"));
  EXPECT_THAT(words_of(args + "run ${ARGS[*]}"), ElementsAre("--tp", "2", "--lr", "1e-4"));
  EXPECT_THAT(words_of(args + "run \"${ARGS[@]}\""), ElementsAre("--tp 2", "--lr 1e-4"));
  EXPECT_THAT(words_of(args + "run \"${ARGS[*]}\""), ElementsAre("--tp 2 --lr 1e-4"));
  EXPECT_THAT(words_of(args + "run $ARGS ${ARGS[1]}"), ElementsAre("--tp", "2", "--lr", "1e-4"));
  EXPECT_THAT(words_of("ARGS='--a 1'\nrun $ARGS \"$ARGS\""), ElementsAre("--a", "1", "--a 1"));
  EXPECT_THAT(words_of("A=()\nrun \"${A[@]}\" ${A[@]} x\"${A[@]}\""), ElementsAre("x"));
  EXPECT_THAT(words_of("A=(1)\nA+=(2 \"3 4\")\nB=(\"${A[@]}\" 5)\nrun \"${B[@]}\""),
              ElementsAre("1", "2", "3 4", "5"));
  EXPECT_THAT(words_of("A=--a\nA+=' 1'\nrun $A"), ElementsAre("--a", "1"));
}

TEST(ShellText, KeepsWhatNobodyKnowsAsOneWord) {
  const std::string args = "A=(--x $(a b) --y `c d` --z \"$(e \"f)\" g)\")\n";
  EXPECT_THAT(words_of(args + "run ${A[@]} --end"),
              ElementsAre("--x", "$(a b)", "--y", "`c d`", "--z", "$(e \"f)\" g)", "--end"));
  EXPECT_THAT(words_of("D=$(date +%Y %m)\nrun --save out_$D --end"),
              ElementsAre("--save", "out_$(date +%Y %m)", "--end"));
  EXPECT_THAT(words_of("run ${A%.sh} ${#A[@]} ${A//a b/c} $UNSET x"),
              ElementsAre("${A%.sh}", "${#A[@]}", "${A//a b/c}", "$UNSET", "x"));
}

TEST(ShellText, CountsInArithmetic) {
  EXPECT_THAT(words_of("A=8; B=4\nrun $(($A*$B)) $((A * (B + 2) / 3)) x"),
              ElementsAre("32", "16", "x"));
  EXPECT_THAT(words_of("run $((A*8)) $((1/0)) $((010)) $((9223372036854775807+1))"),
              ElementsAre("$((A*8))", "$((1/0))", "$((010))", "$((9223372036854775807+1))"));
}

TEST(ShellText, TakesSigns) {
  EXPECT_THAT(words_of("A=3; run $((-A + 5)) $((4 - -2)) $((+1))"), ElementsAre("2", "6", "1"));
}

TEST(ShellText, TakesTheBranchThatItsValuesDecide) {
  EXPECT_THAT(
      words_of("D=fp8\nif [[ \"$D\" == \"fp8\" ]]; then\n A=(--fp8)\nelse\n A=(--bf16)\nfi\n"
               "run ${A[@]}"),
      ElementsAre("--fp8"));
  EXPECT_THAT(words_of("N=${N:-0}\nA=()\nif [ \"$N\" = 1 ]; then A+=(--n); fi\nrun x ${A[@]}"),
              ElementsAre("x"));
  EXPECT_THAT(words_of("T=2\n[ $T -gt 1 ] && A=--sp\n[ $T -gt 2 ] && A=--no\nrun $A"),
              ElementsAre("--sp"));
  EXPECT_THAT(words_of("S=8b\ncase $S in\n 7b) TP=1;;\n 8b|9b) TP=2 ;;\n *) TP=4;;\nesac\nrun $TP"),
              ElementsAre("2"));
  EXPECT_EQ(notes_of("D=1\nif [ $D = 1 ]; then A=1; else A=2; fi\nrun --a $A"), "");
  EXPECT_THAT(words_of("cd /x && X=1\nrun --a $X"), ElementsAre("--a", "1"));
}

TEST(ShellText, TakesAVariableThatNobodySetsForEmptyUnlessSlurmSetsIt) {
  EXPECT_THAT(words_of("if [ -z ${TP} ]; then TP=2; fi\n[ -n \"$W\" ] && TP=4\nrun $TP"),
              ElementsAre("2"));
  EXPECT_THAT(
      words_of("if [[ $BATCH -eq 0 ]]; then A=1; else A=2; fi\n[[ '' -lt 1 ]] && B=1\nrun $A $B"),
      ElementsAre("1", "1"));
  EXPECT_THAT(notes_of("[[ $SLURM_NNODES -gt 1 ]] && N=2\nrun --n"), HasSubstr("sets N"));
  EXPECT_THAT(words_of("run ${SLURM_NNODES:-1} ${NNODES:-1}"),
              ElementsAre("${SLURM_NNODES:-1}", "1"));
  EXPECT_THAT(notes_of("if [ -n \"$SLURM_NNODES\" ]; then N=2; fi\nrun --n"), HasSubstr("sets N"));
}

TEST(ShellText, EndsAtAnExitThatNothingDecides) {
  EXPECT_THAT(
      words_of("if [ -z \"$DATA\" ]; then echo no; exit 1; fi\nrun --a\nexit 0\nrun --b --c"),
      ElementsAre("--a"));
}

// open-r1's and Megatron-LM's scripts take their flags so.
TEST(ShellText, RepeatsALoopWhoseConditionIsKnown) {
  const std::string script =
      "set -- --tp 4 --fp8 --out dir\nREST=\n"
      "while [[ $# -gt 0 ]]; do\n"
      "  case $1 in\n"
      "    --tp) TP=\"$2\"; shift 2;;\n"
      "    --fp8) FP8=1; shift;;\n"
      "    *) REST=\"$REST $1\"; shift;;\n"
      "  esac\n"
      "done\n"
      "run --tp $TP ${FP8:+--fp8-format hybrid} $REST\n";
  EXPECT_THAT(words_of(script), ElementsAre("--tp", "4", "--fp8-format", "hybrid", "--out", "dir"));
  EXPECT_EQ(notes_of(script), "");
  EXPECT_THAT(words_of("N=1\nwhile [ $N -lt 8 ]; do N=$((N * 2)); done\nrun --tp $N"),
              ElementsAre("--tp", "8"));
  EXPECT_THAT(words_of("while [ 2 -lt 1 ]; do TP=8; done\nrun --tp ${TP:-1}"),
              ElementsAre("--tp", "1"));
}

TEST(ShellText, ReadsNoLoopWithoutAnEndOrAKnownCondition) {
  for (const char* loop :
       {"while [[ -f lock ]]; do TP=8; done", "while [ 1 = 1 ]; do TP=8; done",
        "while [ 1 = 1 ]; do TP=8; break; done", "while [ $# -gt 0 ]; do TP=$1; shift; done"}) {
    EXPECT_THAT(notes_of(std::string(loop) + "\nrun --tp 1"),
                HasSubstr("run.sh:1: the loop is not read: it sets TP"))
        << loop;
  }
}

TEST(ShellText, TakesNoBranchThatNobodyKnowsAndSaysSo) {
  const std::string script =
      "TP=1\n"
      "if [ -f conf ]; then\n"
      "  TP=8\n"
      "  ARGS+=(--x)\n"
      "fi\n"
      "run --tp $TP\n";
  EXPECT_THAT(words_of(script), ElementsAre("--tp", "1"));
  EXPECT_THAT(notes_of(script), HasSubstr("run.sh:2: the branch is not read: it sets ARGS, TP\n"
                                          "    give the flags as a command behind --"));
  EXPECT_THAT(notes_of("[ $X = 1 ] && TP=8\nrun --tp $TP"),
              HasSubstr("run.sh:1: what && decides is not read: it sets TP"));
  EXPECT_THAT(notes_of("for i in 1 2; do TP=$i; done\nrun --tp 1"),
              HasSubstr("run.sh:1: the loop is not read: it sets TP"));
  EXPECT_THAT(notes_of("case $X in\n a) TP=8;;\nesac\nrun --tp 1"),
              HasSubstr("run.sh:2: the branch is not read: it sets TP"));
  EXPECT_THAT(notes_of("grep -q x f && TP=8\nrun --tp 1"), HasSubstr("sets TP"));
  const std::vector<SourcedFile> sourced = read("\nsource conf.sh\nrun --tp 1").sourced;
  ASSERT_EQ(sourced.size(), 1U);
  EXPECT_EQ(sourced.front().name, "conf.sh");
  EXPECT_EQ(sourced.front().line, 2);
  // What decides nothing is not said.
  EXPECT_EQ(notes_of("f() { TP=8; }\nif [ ! -f x ]; then\n echo no\n exit 1\nfi\nrun --tp 1"), "");
}

// Nobody knows which branch runs: the first that starts a program is read, and a note says so.
TEST(ShellText, TakesABranchThatNobodyDecidesWhereNothingElseStartsAProgram) {
  const std::string branches =
      "if [ -f x ]; then\n  torchrun a.py --x\nelse\n  torchrun b.py\nfi\n";
  EXPECT_THAT(texts_of(read(branches).words), ElementsAre("torchrun", "a.py", "--x"));
  EXPECT_THAT(notes_of(branches), HasSubstr("run.sh:1: this branch is read, since it starts"));
  EXPECT_THAT(texts_of(read("which srun\nif [ -f x ]; then torchrun x.py --a; fi\n").words),
              ElementsAre("torchrun", "x.py", "--a"));
  EXPECT_THAT(
      texts_of(read("if [ -f x ]; then\n A=1\nelse\n if [ -f y ]; then\n  torchrun b.py\n fi\nfi\n")
                   .words),
      ElementsAre("torchrun", "b.py"));
  EXPECT_THAT(
      texts_of(read("if [ -f x ]; then\n torchrun a.py --x --y\nfi\ntorchrun b.py --z").words),
      ElementsAre("torchrun", "b.py", "--z"));
}

TEST(ShellText, SaysThatOneOfSeveralProgramsIsRead) {
  EXPECT_THAT(notes_of("python a.py --x\ntorchrun b.py --x --y\n"),
              HasSubstr("run.sh:2: of 2 commands that start a program"));
  EXPECT_THAT(texts_of(read("pip install --a --b --c x\ntorchrun b.py --x\n").words),
              ElementsAre("torchrun", "b.py", "--x"));
}

TEST(ShellText, UnsetsAndExports) {
  const auto environment = [](const std::string& script) {
    return texts_of(read(script).environment);
  };
  EXPECT_THAT(environment("export C=1\nunset C\nrun --a"), IsEmpty());
  EXPECT_THAT(environment("C=1\nexport C D=2\nrun --a"), ElementsAre("C=1", "D=2"));
  EXPECT_THAT(environment("C=1\nrun --a"), IsEmpty());
  EXPECT_THAT(environment("C=1 other\nE=3 run --a\n"), ElementsAre("E=3"));
  EXPECT_THAT(environment("export C=1\nC=2\nrun --a"), ElementsAre("C=2"));
  EXPECT_THAT(environment("export C=1 # alone"), ElementsAre("C=1"));
  EXPECT_THAT(environment("env C=1 run --a"), ElementsAre("C=1"));
  EXPECT_THAT(words_of("C=1\nunset C\nrun x $C ${C:-2}"), ElementsAre("x", "2"));
}

TEST(ShellText, EndsACommandAtRedirectionsAndOperators) {
  EXPECT_THAT(words_of("run --a 1 > log 2>&1"), ElementsAre("--a", "1"));
  EXPECT_THAT(words_of("run --a 1 &> log --b"), ElementsAre("--a", "1", "--b"));
  EXPECT_THAT(words_of("run --a < f 2>/dev/null | tee -a x"), ElementsAre("--a"));
  EXPECT_THAT(words_of("run --a 2 >>log &\nwait"), ElementsAre("--a", "2"));
  EXPECT_THAT(words_of("run --a; echo b && echo c"), ElementsAre("--a"));
  EXPECT_THAT(words_of("cat <<EOF > f\nother --a --b --c\nEOF\nrun --x"), ElementsAre("--x"));
  EXPECT_THAT(words_of("cat <<-'E F'\n\tother --a --b\n\tE F\n"), IsEmpty());
  EXPECT_THAT(problem_of("cat <<EOF\nrun --x\n"),
              HasSubstr("a here-document that <<EOF opens has no EOF"));
  EXPECT_THAT(problem_of("run --a >\n"), HasSubstr("run.sh:1: a redirection without a file"));
  EXPECT_THAT(problem_of("cat <in >\n"), HasSubstr("<in > stands for a value"));
  EXPECT_THAT(problem_of("\nDATA=<your data path>\nrun --a $DATA\n"),
              HasSubstr("run.sh:2: <your data path> stands for a value, and bash takes it for "
                        "redirections\n    put the value in its place"));
  EXPECT_THAT(problem_of("LOAD=<path (e.g. /345m)>\n"),
              HasSubstr("run.sh:1: <path (e.g. /345m)> stands for a value"));
}

TEST(ShellText, SaysThatALostLineBeginsACommand) {
  EXPECT_THAT(notes_of("run --a \\\n  --b 1\n  --c 2\n"),
              HasSubstr("run.sh:3: --c begins a command: it is not read"));
}

TEST(ShellText, ReadsTheTextOfAnInnerShell) {
  EXPECT_THAT(texts_of(read("O=\" --a 1 \\\n --b\"\nC=\"python -u x.py ${O}\"\n"
                            "srun -N 2 --ntasks-per-node=8 sh -c \"${C}\"")
                           .words),
              ElementsAre("srun", "-N", "2", "--ntasks-per-node=8", "python", "-u", "x.py", "--a",
                          "1", "--b"));
  EXPECT_THAT(texts_of(read("C='torchrun x.py --a \"b c\"'\neval $C").words),
              ElementsAre("torchrun", "x.py", "--a", "b c"));
}

TEST(ShellText, ReadsDirectivesOfSlurm) {
  EXPECT_THAT(texts_of(read("#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH -n 8 # tasks\nrun --a\n"
                            "#SBATCH --nodes=5\n")
                           .directives),
              ElementsAre("--nodes=4", "-n", "8"));
}

TEST(ShellText, ReadsAListOfArguments) {
  EXPECT_THAT(texts_of(read("\xef\xbb\xbf--a 1\r\n# of b\r\n--b \"c d\"\r\n").words),
              ElementsAre("--a", "1", "--b", "c d"));
}

TEST(ShellText, NamesWhatIsNoScript) {
  EXPECT_THAT(problem_of(std::string("run --a\nx \0y", 12)),
              HasSubstr("run.sh:2: a control character"));
  EXPECT_THAT(problem_of("run \x1b[2J"), HasSubstr("run.sh:1: a control character"));
  EXPECT_THAT(problem_of("A=(x"), HasSubstr("has no )"));
  EXPECT_THAT(problem_of("run 'x"), HasSubstr("a quote that ' opens"));
  EXPECT_THAT(problem_of("run \"x"), HasSubstr("a quote that \" opens"));
  EXPECT_THAT(problem_of("run `x"), HasSubstr("a quote that ` opens"));
  EXPECT_THAT(problem_of("run ${x"), HasSubstr("a variable that ${ opens"));
  EXPECT_THAT(problem_of("run $(x"), HasSubstr("has no )"));
  EXPECT_THAT(problem_of("if true; then\nrun --a\n"), HasSubstr("if of line 1 has no fi"));
  EXPECT_THAT(problem_of("run --a\nfi\n"), HasSubstr("run.sh:2: a fi without what it ends"));
  EXPECT_THAT(problem_of("run (x)"), HasSubstr("a ( inside a command"));
}

TEST(ShellText, StopsAtItsSizeAtOnce) {
  std::string grows = "A=(x)\n";
  for (int i = 0; i < 60; ++i) grows += "A+=(y ${A[@]})\n";
  EXPECT_THAT(problem_of(grows + "run ${A[@]}"), HasSubstr("more than 1 MB of words\n"));
  std::string texts = "A=xxxxxxxx\n";
  for (int i = 0; i < 60; ++i) texts += "A=$A$A\n";
  EXPECT_THAT(problem_of(texts), HasSubstr("more than 1 MB of words\n"));
}

TEST(ShellText, TakesTimeInProportionToItsLength) {
  const auto times = [](const std::string& text, int count) {
    std::string made;
    for (int i = 0; i < count; ++i) made += text;
    return made;
  };
  const std::string flags = "torchrun x.py " + times("--a ", 60'000);
  EXPECT_EQ(read(flags + times("; \n", 200'000)).words.size(), 60'002U);
  EXPECT_THAT(problem_of(flags + times(";", 700'000)), HasSubstr("a ;; without what it ends"));
  read_shell(times("<<A ", 200'000), "run.sh").ok();
  read_shell(times("(", 900'000), "run.sh").ok();
  read_shell(times("( ", 400'000), "run.sh").ok();
  read_shell(times("${a:-", 180'000), "run.sh").ok();
  read_shell(times("x=(", 300'000), "run.sh").ok();
  read_shell(times("$(\"", 300'000), "run.sh").ok();
  read_shell(times("if ", 300'000), "run.sh").ok();
  read_shell(times("eval ", 180'000) + "x", "run.sh").ok();
  read_shell(times("f(){ ", 180'000), "run.sh").ok();
  read_shell("run " + times("{a,", 199) + times("x,", 300'000), "run.sh").ok();
  read_shell(times("{a,b} ", 160'000), "run.sh").ok();
  read_shell("run " + times("{a,b}", 200), "run.sh").ok();
  read_shell("run " + times("{1..9}x", 140'000), "run.sh").ok();
  read_shell(times("cat <<A >b\nx\nA\n", 60'000), "run.sh").ok();
  read_shell(times("export A=1 B;", 70'000), "run.sh").ok();
  std::string many;
  for (int i = 0; i < 30'000; ++i) many += fmt::format("export A{}=1\nb --c\n", i);
  read_shell(many, "run.sh").ok();
}

}  // namespace
}  // namespace shardwise
