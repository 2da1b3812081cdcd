// Scripts in scripts: what sbatch and shells are handed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "planner/export/configuration/job_files.h"
#include "planner/export/shell/shell_text.h"
#include "tests/planner/export/shell_reading.h"

namespace shardwise::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Texts all_words(const std::string& script) { return texts_of(read(script).words); }

TEST(InnerScripts, AreReadFromAHereDocumentOfSbatch) {
  const ShellCommand made = read(
      "L=1e-4\nexport T=2\n"
      "sbatch --parsable -N 8 <<EOF\n"
      "#!/bin/bash\n"
      "#SBATCH --nodes=4\n"
      "#SBATCH --gres=gpu:8\n"
      "export A=\\$SLURM_NNODES\n"
      "srun python x.py --lr $L \\\n"
      "  --t \\$T --l \"\\${L:-0}\" --a \\$A\n"
      "EOF\n"
      "echo sent\n");
  EXPECT_THAT(texts_of(made.words), ElementsAre("srun", "python", "x.py", "--lr", "1e-4", "--t",
                                                "2", "--l", "0", "--a", "8"));
  EXPECT_THAT(texts_of(made.directives),
              ElementsAre("--nodes=4", "--gres=gpu:8", "--parsable", "-N", "8"));
  EXPECT_THAT(texts_of(made.environment), ElementsAre("A=8", "T=2"));
  EXPECT_EQ(made.words.front().line, 8);
  EXPECT_EQ(made.words[made.words.size() - 2].line, 9);
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST(InnerScripts, ExpandNothingOfAnEndInQuotes) {
  EXPECT_THAT(all_words("T=1\nsbatch << 'END'\nT=2\nsrun python x.py --t $T\nEND\n"),
              ElementsAre("srun", "python", "x.py", "--t", "2"));
}

// The variables of a script are not those of a shell that it starts, but the exported ones.
TEST(InnerScripts, HaveTheExportedVariablesAlone) {
  EXPECT_THAT(all_words("A=1\nexport B=2\nbash <<'E'\nrun --a ${A:-none} --b $B\nE\n"),
              ElementsAre("run", "--a", "none", "--b", "2"));
  EXPECT_THAT(all_words("A=1 bash <<'E'\nrun --a $A\nE\n"), ElementsAre("run", "--a", "1"));
  EXPECT_THAT(all_words("bash <<'E'\nexport A=1\nE\nrun --a --b ${A:-none}\n"),
              ElementsAre("run", "--a", "--b", "none"));
}

TEST(InnerScripts, AreReadFromPipesAndStrings) {
  EXPECT_THAT(all_words("cat <<E | sbatch -N 2\nsrun python x.py --a\nE\n"),
              ElementsAre("srun", "python", "x.py", "--a"));
  EXPECT_THAT(all_words("T='run --a 1'\necho \"$T\" | bash\n"), ElementsAre("run", "--a", "1"));
  EXPECT_THAT(all_words("T='run --a 1'\nbash <<< \"$T\"\n"), ElementsAre("run", "--a", "1"));
  EXPECT_THAT(all_words("srun -N 2 bash -s <<E\npython x.py --a\nE\n"),
              ElementsAre("srun", "-N", "2", "python", "x.py", "--a"));
  EXPECT_THAT(all_words("ssh host <<E\ntorchrun x.py --a\nE\n"),
              ElementsAre("torchrun", "x.py", "--a"));
  EXPECT_THAT(all_words("sbatch -N 2 --wrap=\"srun python x.py --a 'b c'\"\n"),
              ElementsAre("srun", "python", "x.py", "--a", "b c"));
  EXPECT_THAT(texts_of(read("sbatch -N 2 --wrap 'srun python x.py'\n").directives),
              ElementsAre("-N", "2"));
}

TEST(InnerScripts, AreReadFromFilesThatTheScriptWrote) {
  const std::string wrote = "cat > job.sh <<'E'\n#SBATCH -N 3\nsrun python x.py --b $1 --n $#\nE\n";
  const Texts words = {"srun", "python", "x.py", "--b", "7", "--n", "2"};
  EXPECT_EQ(all_words(wrote + "sbatch job.sh 7 8\n"), words);
  EXPECT_EQ(all_words(wrote + "bash ./job.sh 7 8\n"), words);
  EXPECT_EQ(all_words(wrote + "chmod +x job.sh && ./job.sh 7 8\n"), words);
  EXPECT_THAT(texts_of(read(wrote + "sbatch job.sh\n").directives), ElementsAre("-N", "3"));
  EXPECT_THAT(problem_of("cat > a.sh <<'E'\nbash a.sh\nE\nbash a.sh\n"),
              HasSubstr("more than 100 deep"));
}

TEST(InnerScripts, AreReadAheadOfTheEndOfTheirLine) {
  const Texts words = {"srun", "python", "x.py", "--a"};
  EXPECT_EQ(all_words("cat <<E | sbatch | tee x\nsrun python x.py --a\nE\n"), words);
  EXPECT_EQ(all_words("sbatch <<E || exit 1\nsrun python x.py --a\nE\n"), words);
  const ShellCommand made = read("cat <<E > a.json && run --b\n{}\nE\necho\n");
  ASSERT_EQ(made.files.size(), 1U);
  EXPECT_EQ(made.files.front().text, "{}\n");
  EXPECT_EQ(made.files.front().line, 2);
}

TEST(InnerScripts, AreReadFromSubstitutions) {
  EXPECT_THAT(
      all_words("J=$(sbatch --parsable -N 2 <<E\nsrun python x.py --n \\$SLURM_NNODES\nE\n)\n"
                "echo $J\n"),
      ElementsAre("srun", "python", "x.py", "--n", "2"));
  EXPECT_THAT(all_words("A=1\nC=$(cat <<E\ntorchrun x.py --a $A\n\nE\n)\neval $C\n"),
              ElementsAre("torchrun", "x.py", "--a", "1"));
  EXPECT_THAT(all_words("C=\"$(cat <<'E'\n--a $A\nE\n) --b\"\nrun \"$C\"\n"),
              ElementsAre("run", "--a $A --b"));
  EXPECT_THAT(all_words("C=$(cat <<E | sed s/a/b/\n--a\nE\n)\nrun $C\n"),
              ElementsAre("run", "$(cat <<E | sed s/a/b/\n--a\nE\n)"));
  EXPECT_THAT(all_words("J=$(sbatch job.sh)\nrun $J\n"), ElementsAre("run", "$(sbatch job.sh)"));
}

// Of a job with more here-documents than people write, the reader stays fast.
TEST(InnerScripts, AreSaidWhereTheyAreNotRead) {
  std::string many = "sbatch <<E0";
  std::string texts = "srun python x.py --a\nE0\n";
  for (int i = 1; i < 60; ++i) {
    many += "; cat <<E" + std::to_string(i);
    texts += "E" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(all_words(many + "\n" + texts), Texts({"srun", "python", "x.py", "--a"}));
  const std::string first = many.substr(many.find(';') + 2) + "; " + "sbatch <<E0 || true\n";
  const std::string rest = texts.substr(texts.find("E1\n")) + "srun python x.py --a\nE0\n";
  EXPECT_THAT(problem_of(first + rest),
              HasSubstr("run.sh:1: the program is started where it is not read"));
}

TEST(InnerScripts, FillVariablesByRead) {
  EXPECT_THAT(all_words("read -r -d '' C <<E || true\n\n x.py --a \\\n  --b\nE\n"
                        "deepspeed --module $C\n"),
              ElementsAre("deepspeed", "--module", "x.py", "--a", "--b"));
  EXPECT_THAT(texts_of(read("read -r C <<E\nx.py --a\nE\ntorchrun x.py $C\n").words),
              ElementsAre("torchrun", "x.py", "$C"));
}

ShellCommand started(const std::string& script, const std::vector<std::string>& command) {
  const std::optional<JobFile> file = script_of_command(command);
  EXPECT_TRUE(file);
  const Result<ShellCommand> made = read_shell(script, "run.sh", file->start);
  EXPECT_TRUE(made.ok()) << to_string(made.problems());
  return *made;
}

TEST(StartedScripts, HaveTheArgumentsOfTheirCommand) {
  const std::string script =
      "#SBATCH -N 1\nif [ $# -lt 2 ]; then TP=1; else TP=$2; fi\n"
      "run --m $1 --tp $TP --lr ${LR:-1e-4} --all \"$@\"\n";
  EXPECT_THAT(texts_of(started(script, {"LR=3e-4", "bash", "-x", "run.sh", "8B", "4"}).words),
              ElementsAre("run", "--m", "8B", "--tp", "4", "--lr", "3e-4", "--all", "8B", "4"));
  EXPECT_THAT(texts_of(started(script, {"./run.sh", "8B"}).words),
              ElementsAre("run", "--m", "8B", "--tp", "1", "--lr", "1e-4", "--all", "8B"));
  const ShellCommand many = started("run ${10} ${11} $10\n", {"bash", "run.sh", "a", "b", "c", "d",
                                                              "e", "f", "g", "h", "i", "j", "k"});
  EXPECT_THAT(texts_of(many.words), ElementsAre("run", "j", "k", "a0"));
  const ShellCommand batch = started(script, {"sbatch", "-N", "4", "run.sh", "8B"});
  EXPECT_THAT(texts_of(batch.directives), ElementsAre("-N", "1", "-N", "4"));
}

TEST(StartedScripts, AreNoOtherCommands) {
  EXPECT_FALSE(script_of_command({"torchrun", "--nnodes", "2", "run.sh"}));
  EXPECT_FALSE(script_of_command({"bash", "-c", "torchrun x.py"}));
  EXPECT_FALSE(script_of_command({"MODULE=llama3", "./run_train.sh"}));
  EXPECT_FALSE(script_of_command({"A=1"}));
  EXPECT_FALSE(script_of_command({"sbatch", "-N", "4"}));
  EXPECT_FALSE(script_of_command({}));
}

}  // namespace
}  // namespace shardwise::test
