#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/export/shell/shell_lexer.h"
#include "planner/export/shell/shell_text.h"

namespace shardwise {

bool in_shell_names(char c);
bool is_shell_name(std::string_view text);
/// Blanks, line ends and operators.
bool ends_shell_words(char c);
/// "NAME=…" or "NAME+=…".
bool is_assignment(std::string_view text);

/// Marks of what nobody knows in a value, which stands between them; scripts have no control
/// characters.
inline constexpr char kUnknownBegin = '\x01';
inline constexpr char kUnknownEnd = '\x02';
bool is_unknown(std::string_view value);
/// Whether Slurm sets a variable: the script's default is then not what it has.
bool is_of_slurm(std::string_view name);
/// Parts of a value that nobody knows, as they are written: "$MORE".
std::vector<std::string> unknowns_of(std::string_view value);
/// The value as it is written, without the marks.
std::string unmarked(std::string value);

/// The variables of a script, and the words that they make, as bash makes them.
class ShellVariables {
 public:
  explicit ShellVariables(ShellTrouble& trouble) : trouble_(trouble) {}

  void set(const std::string& name, ShellWord value, bool append);
  void set_list(const std::string& name, std::vector<ShellWord> values, bool append);
  void unset(const std::string& name) { variables_[name] = {}; }
  /// From here on nobody knows its value.
  void forget(const std::string& name) { variables_.erase(name); }
  /// The value of a variable that is no array; null where it has none.
  const ShellWord* find(const std::string& name) const;

  /// The words of a token: none, one, or several where values are split at spaces.
  std::vector<ShellWord> expand(const ShellToken& token);
  /// The pattern that parts make, in which \\c is the character c; nothing where nobody knows.
  std::optional<std::string> pattern(const std::vector<ShellPart>& parts, int line);
  /// One word, as an assignment or [[ … ]] takes it.
  std::string joined(const std::vector<ShellPart>& parts, int line);

  struct Value {
    std::vector<ShellWord> elements;  // one, of a variable that is no array
    bool array = false;
  };
  /// Nothing where nobody knows it.
  std::optional<Value> value(const std::string& name) const;
  void restore(const std::string& name, std::optional<Value> value);
  /// Forgets all others.
  void keep(const std::set<std::string>& names);

  /// Bytes of all values: what a copy costs.
  std::size_t size() const;
  void restore(const ShellVariables& copy) { variables_ = copy.variables_; }

 private:
  /// Words in the making.
  struct Fields {
    std::vector<ShellWord> words;
    bool open = false;  // the last word goes on
    int line = 0;
    int column = 0;
    bool split = true;
  };
  void expand(const std::vector<ShellPart>& parts, bool inside, Fields& fields);
  void expand_variable(const ShellPart& part, Fields& fields);
  // shell_operations.cc
  /// The values that ${NAME%…} and its kin make of those of NAME; nothing where nobody knows.
  std::optional<std::vector<std::string>> changed(const ShellPart& part,
                                                  const std::vector<const ShellWord*>& values,
                                                  int line);
  std::optional<std::vector<std::string>> slice(const ShellPart& part,
                                                const std::vector<const ShellWord*>& values,
                                                int line);
  std::optional<std::int64_t> number(const std::string& text) const;
  void add(Fields& fields, std::string_view text, const ShellWord* from) const;
  /// Text without quotes, in which * stands for names of files.
  void add_open(Fields& fields, std::string_view text, const ShellWord* from) const;
  void add_split(Fields& fields, std::string_view text, const ShellWord* from) const;
  /// The elements that $NAME, ${NAME[0]} or ${NAME[@]} means; nothing where nobody knows.
  std::optional<std::vector<const ShellWord*>> elements(const ShellPart& part) const;
  std::string sum(std::string_view raw) const;

  ShellTrouble& trouble_;
  std::map<std::string, Value> variables_;
};

}  // namespace shardwise
