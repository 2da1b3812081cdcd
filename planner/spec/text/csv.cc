#include "planner/spec/text/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// Takes a text apart into rows of cells.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool done() const { return at_ >= text_.size(); }
  bool unclosed() const { return unclosed_; }

  CsvTable::Row row() {
    CsvTable::Row row;
    row.line = line_;
    do {
      row.cells.push_back(cell());
    } while (take(','));
    take('\r');
    if (take('\n')) ++line_;
    return row;
  }

 private:
  bool take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string cell() {
    std::string cell;
    if (!take('"')) {
      while (!done() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
        cell += text_[at_++];
      }
      return cell;
    }
    for (; !done(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        cell += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += '"';
        ++at_;
      } else {
        ++at_;
        return cell;
      }
    }
    unclosed_ = true;
    return cell;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool unclosed_ = false;
};

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

Result<CsvTable> parse_csv(std::string_view text, const std::string& file) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  CsvTable table;
  table.file = file;
  Diagnostics problems;
  const auto fail = [&](int line, std::string message, std::string hint = {}) {
    if (problems.size() < kMostListedProblems) {
      problems.push_back({file, line, 0, "", std::move(message), std::move(hint)});
    }
  };
  if (first_not_utf8(text) != text.size()) fail(0, "not UTF-8 text");
  Scanner scanner(text);
  if (scanner.done()) fail(0, "empty", "the first line names the columns");
  while (!scanner.done() && problems.empty()) {
    CsvTable::Row row = scanner.row();
    const bool blank = row.cells.size() == 1 && row.cells.front().empty();
    if (scanner.unclosed()) {
      fail(row.line, "a quote is not closed");
    } else if (table.columns.empty()) {
      table.columns = std::move(row.cells);
      for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (table.column(table.columns[i]) != i) {
          fail(row.line, fmt::format("two columns are named {}", shown(table.columns[i])));
        }
      }
    } else if (!blank && row.cells.size() != table.columns.size()) {
      fail(row.line, fmt::format("{} cells, but there are {} columns", row.cells.size(),
                                 table.columns.size()));
    } else if (!blank) {
      table.rows.push_back(std::move(row));
    }
  }
  if (!problems.empty()) return problems;
  return table;
}

}  // namespace shardwise
