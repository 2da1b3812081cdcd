#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/export/shell/shell_lexer.h"
#include "planner/export/shell/shell_tests.h"
#include "planner/export/shell/shell_text.h"
#include "planner/export/shell/shell_variables.h"

namespace shardwise {

/// Walks through the commands of a script in their order.
class ShellReader {
 public:
  /// \param taken  lines of branches that are taken where nobody knows whether they are
  ShellReader(std::string_view text, const std::string& file, bool lines_are_one,
              std::set<int> taken = {});
  Result<ShellCommand> read(const ShellStart& start);
  /// The line of the first part that would start the program and was not read; 0 for none.
  int lost() const { return lost_; }

 private:
  using Words = std::vector<ShellWord>;
  /// Whether commands are carried out, known not to run, or not known to run.
  enum class Mode : std::uint8_t { run, skip, undecided };
  /// Effects of commands that are not read: variables set, a program started.
  struct Unread {
    int line = 0;
    std::set<std::string> names;
    bool program = false;
  };

  /// Where a command reads from and writes to.
  struct Streams {
    std::optional<ShellToken> output;  // the file behind >
    bool appends = false;              // >>
    std::optional<ShellToken> here;    // its here-document
    std::optional<ShellToken> word;    // behind <<<
    std::optional<std::string> piped;  // what the command before | writes
  };

  struct Function {
    std::string_view body;
    int line = 0;
    Unread unread;  // what a call does that is not read
  };
  using Locals = std::map<std::string, std::optional<ShellVariables::Value>>;

  // shell_reader.cc: lists, branches, loops
  Outcome list(Mode mode);
  void to_the_end(Mode mode);
  Outcome and_or(Mode mode);
  Outcome pipeline(Mode mode);
  Outcome command(Mode mode);
  Outcome double_bracket(Mode mode);
  void if_command(Mode mode);
  void case_command(Mode mode);
  void loop(Mode mode, bool has_name);
  void decided_loop(int line);
  void subshell(Mode mode);
  void skip_newlines();
  void expect(std::string_view word, std::string_view opener, int line);
  static Mode decided(Mode mode, Outcome outcome);
  /// The mode of a branch in commands of `outer` mode: one of `taken_` runs.
  Mode branch_mode(Mode outer, Mode mode, int line);
  /// Reads a part that stands in commands read in `outer` mode; a note says what it would set.
  template <class Body>
  void part(Mode outer, Mode mode, int line, const char* what, const Body& body);
  void note(const Unread& unread, const char* what);
  void note(int line, const std::string& message, const std::string& hint);

  // shell_functions.cc
  void function(Mode mode, const std::string& name, int line);
  Outcome call(const Function& function, Words words);
  /// Makes a variable one of the function that is called: it has its value back at its end.
  void make_local(const std::string& name);
  void set_arguments(std::optional<Words> words);
  void shift(const Words& words);

  // shell_files.cc
  static bool is_redirection(const ShellToken& token);
  void redirection(Streams& streams);
  bool say_placeholder(const ShellToken& token);
  void skip_redirections();
  std::optional<std::string> here_text(const ShellToken& token, bool keeps_lines = false);
  std::optional<std::string> written_text(const Words& words, const Streams& streams);
  void write_files(const Words& words, const Streams& streams);
  /// Text that a command with these streams reads.
  std::optional<std::string> read_text(const Streams& streams);
  void read_into_variable(const Words& words, const Streams& streams);

  // shell_inner.cc: text that another shell reads
  void read_inner(const std::string& text, const ShellWord& at, Words before);
  /// A script in the script, and what its shell is started with.
  struct InnerScript {
    std::string text;
    int line = 0;     // of its first line
    Words before;     // srun and its flags
    Words options;    // of sbatch
    Words arguments;  // $1, $2, …
    Words environment;
  };
  bool read_handed(const Words& words, const Streams& streams, const Words& environment);
  bool read_wrapped(const Words& words, const Words& environment);
  const WrittenFile* written_script(const Words& words, std::size_t& at) const;
  void read_script(InnerScript script);
  void set_environment(const Words& environment);
  void substitute(std::vector<ShellPart>& parts, int line);

  // shell_commands.cc: one command
  Outcome simple(Mode mode);
  void look_at(const std::vector<ShellToken>& tokens);
  Outcome run(const std::vector<ShellToken>& tokens, Streams streams);
  /// \returns whether a word is known
  Outcome assign(const ShellToken& token);
  void declare(const std::vector<ShellToken>& tokens, std::size_t from, const std::string& how);
  /// \returns nothing where the words are no command of the shell itself
  std::optional<Outcome> builtin(const Words& words, int line);
  void set_options(const Words& words);
  void source(std::string name, int line);
  void start(Words words, std::vector<ShellWord> environment);
  std::vector<ShellWord> exported() const;

  ShellTrouble trouble_;
  bool lines_are_one_;
  std::set<int> taken_;
  ShellLexer first_;
  ShellLexer* lexer_ = &first_;
  ShellVariables variables_;
  std::set<std::string> exported_;
  bool exports_all_ = false;  // set -a
  std::map<std::string, Function> functions_;
  std::vector<Locals> locals_;  // of the functions that are called
  Unread unread_;               // of the part that is being read
  bool assumed_ = false;        // the last command is taken to succeed
  bool exited_ = false;
  int branches_ = 0;  // around the command
  int depth_ = 0;
  int started_ = 0;  // commands that start a program
  int commands_ = 0;
  std::vector<WrittenFile> files_;
  std::vector<SourcedFile> sourced_;
  std::set<std::string> unread_names_;  // that parts set which are not read
  std::deque<std::string> texts_;       // of bash -c and eval
  Words before_;                        // words before bash -c
  Words directives_;                    // of the batch script that is being read
  Streams piped_;                       // of the command before |
  int lost_ = 0;                        // line of the first program that is not read
  ShellCommand best_;
  std::ptrdiff_t best_flags_ = -1;
  bool best_starts_ = false;
  Diagnostics notes_;
};

}  // namespace shardwise
