#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/export/launch/shell_command.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Arguments and variables that a script is started with: X=1 sbatch -N 4 run.sh 8B.
struct ShellStart {
  std::vector<ShellWord> arguments;    // $1, $2, …
  std::vector<ShellWord> environment;  // "NAME=VALUE"
  std::vector<ShellWord> options;      // of sbatch, which count before #SBATCH lines
  bool stated = false;                 // false: nobody knows the arguments
};

/// Reads a list of arguments, or a shell script that sets variables and arrays and then starts a
/// program with them: what people publish. Of several commands the one with most flags is taken.
/// A text that begins with a flag is a list of arguments, whose lines are one command.
///
/// Words are those that bash makes: quotes, comments, continued lines, NAME=VALUE, NAME=(…), +=,
/// export, unset, $NAME, ${NAME[@]}, ${NAME:-VALUE}, ${NAME%…}, $((…)), {a,b}, functions, set --,
/// redirections, here-documents, the text of bash -c and eval, and scripts that the script hands to
/// a shell or to sbatch. Nothing is run and no file is looked for: a word with $(…), with a
/// variable that is not set or with a pattern of file names stays as it is written. Of if and case
/// the branch is taken that values of the script decide. Other branches and loops are not read,
/// which a note says where they set a variable or start a program. Where nothing else starts one,
/// the first such branch is taken. At most kMostShellBytes come out. \param file  the name put into
/// diagnostics
Result<ShellCommand> read_shell(std::string_view text, const std::string& file,
                                const ShellStart& start = {});

/// The place of a control character that is no line end, tab or blank; text.size() for none.
std::size_t control_character(std::string_view text);

inline constexpr std::size_t kMostShellBytes = 1'000'000;
/// How deep a script may nest: commands, expansions, braces.
inline constexpr int kMostShellNesting = 100;

}  // namespace shardwise
