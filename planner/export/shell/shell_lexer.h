#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/export/shell/shell_text.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Reason to stop reading a script: its first problem, or more text than kMostShellBytes.
struct ShellTrouble {
  std::string file;
  Diagnostics problems;
  std::size_t made = 0;  // bytes of words, values and copies of them

  bool stops() const { return !problems.empty(); }
  /// Keeps the first problem only: what follows it may be its consequence.
  void say(int line, int column, const std::string& message, const std::string& hint = "");
  /// Counts what is made, so that a short script cannot fill the memory.
  void charge(std::size_t bytes, int line);
};

/// A part of a word: characters, or something in their place that an expansion fills in.
struct ShellPart {
  enum class Kind : std::uint8_t {
    text,
    variable,    // $NAME, ${NAME}, ${NAME[@]}, ${NAME:-VALUE}
    arithmetic,  // $((…))
    unknown      // $(…), `…`, ${!NAME}: nothing is run
  };
  Kind kind = Kind::text;
  bool quoted = false;
  std::string text;       // of text; of a variable its name
  std::string_view raw;   // of others: as it is written
  std::string subscript;  // "", "@", "*" or "0"
  /// Operation of ${…}: "", ":-", "-", ":=", "=", ":+", "+", ":?", "?"; "length" of ${#NAME}; "#",
  /// "##", "%",
  /// "%%", "/", "//", "/#", "/%", "^^", ",,"; ":" of ${NAME:FROM:COUNT}.
  std::string operation;
  std::vector<ShellPart> value;  // of an operation: what is behind it, of / the pattern
  std::vector<ShellPart> with;   // of /
};

/// A word, an operator, or the list of NAME=(…).
struct ShellToken {
  enum class Kind : std::uint8_t {
    word,
    list,        // text: "NAME=" or "NAME+="
    newline,     // or ;
    background,  // &
    pipe,
    and_if,
    or_if,
    open,
    close,
    case_end,  // ;; and its kin
    redirect,  // whose file is the next word; text: "2>"
    here,      // << and its end
    end
  };
  Kind kind = Kind::end;
  int line = 0;
  int column = 0;
  std::string text;      // of a list; of an operator
  int number = 0;        // of a here-document
  std::size_t from = 0;  // its place in the text
  std::vector<ShellPart> parts;
  std::vector<ShellToken> elements;  // of a list

  bool is_word() const { return kind == Kind::word; }
  /// The text of a word without quotes and expansions; "" of any other.
  std::string_view bare() const;
};

/// Text between << EOF and EOF.
struct HereDocument {
  std::string end;
  bool tabs = false;    // <<- : tabs before its lines are left out
  bool quoted = false;  // << 'EOF': nothing in it is expanded
  bool read = false;    // the lexer is behind it
  int line = 0;         // of the first line of its text
  std::string body;
};

/// Cuts a script into tokens. Comments and continued lines are left out.
class ShellLexer {
 public:
  /// \param text           without carriage returns and control characters; outlives the tokens
  /// \param lines_are_one  a list of arguments, whose lines end no command
  /// \param at             where all tokens stand, or null: where they are
  /// \param first_line     of the text
  ShellLexer(std::string_view text, ShellTrouble& trouble, bool lines_are_one,
             const ShellWord* at = nullptr, int first_line = 1);

  /// The text of a here-document whose end has no quotes, in parts.
  /// \param keeps_lines  \ stays at the ends of continued lines, for a shell that reads the text
  static std::vector<ShellPart> here_parts(std::string_view body, ShellTrouble& trouble,
                                           bool keeps_lines);

  const ShellToken& peek() const { return next_; }
  ShellToken take();
  /// Text between two places.
  std::string_view text(std::size_t from, std::size_t to) const {
    return text_.substr(from, to - from);
  }
  /// The here-document of a token, which stands behind its line. \pre token.kind is here
  HereDocument here_document(const ShellToken& token) const;
  /// The words of #SBATCH lines before the first command.
  std::vector<ShellWord>& directives() { return directives_; }

 private:
  struct Bare {};
  ShellLexer(Bare, std::string_view text, ShellTrouble& trouble);
  char look(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char step();
  bool more() const { return at_ < text_.size() && !trouble_.stops(); }
  void fail(const std::string& message);
  ShellToken read();
  ShellToken token(ShellToken::Kind kind, std::size_t length);
  ShellToken redirect();
  ShellToken word();
  void list(ShellToken& made);
  void skip_blanks();
  void comment();
  ShellToken here_document();
  void read_here_documents();
  void single_quoted(ShellToken& made);
  void double_quoted(std::vector<ShellPart>& parts);
  /// To `end`, or '\0': to the end of the text.
  void expanded(std::vector<ShellPart>& parts, char end);
  void dollar(std::vector<ShellPart>& parts, bool quoted);
  void ansi_c_quoted(std::vector<ShellPart>& parts, std::size_t from);
  void skip_ansi_c_quotes();
  void braced(std::vector<ShellPart>& parts, bool quoted, std::size_t from);
  void operation(ShellPart& made, bool quoted);
  void value(std::vector<ShellPart>& parts, bool quoted, char end = '}');
  void backticks(std::vector<ShellPart>& parts, bool quoted);
  void skip_parentheses();
  void skip_double_quotes();
  void unknown(std::vector<ShellPart>& parts, bool quoted, std::size_t from,
               ShellPart::Kind kind = ShellPart::Kind::unknown) const;
  static void add(std::vector<ShellPart>& parts, char c, bool quoted);

  std::string_view text_;
  ShellTrouble& trouble_;
  bool lines_are_one_;
  const ShellWord* fixed_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
  int depth_ = 0;  // of expansions in expansions
  bool begun_ = false;
  bool in_list_ = false;
  bool keeps_lines_ = false;
  ShellToken next_;
  std::vector<HereDocument> here_;
  std::size_t here_read_ = 0;  // of them, those whose text was read
  std::vector<ShellWord> directives_;
};

}  // namespace shardwise
