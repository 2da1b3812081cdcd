#include "planner/command/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "planner/command/command_words.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::vector<std::string> first = {}) : first_(std::move(first)) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (first_.empty() || mode != CLI::AppFormatMode::Normal) {
      return without_blank_pairs(CLI::Formatter::make_help(app, std::move(name), mode));
    }
    const CLI::App* parent = app->get_parent();
    if (parent != nullptr) name = parent->get_name() + " " + app->get_name();
    std::string text =
        make_description(app) + make_usage(app, name) + make_positionals(app) + "\nFlags:\n";
    for (const std::string& flag : first_) text += make_option(app->get_option(flag), false);
    const auto all = std::ranges::count_if(app->get_options(), &CLI::Option::nonpositional);
    text += fmt::format("\nAll {} flags: {} --help-all\n", all, name);
    return without_blank_pairs(text + "\n" + make_footer(app));
  }
  std::string make_description(const CLI::App* app) const override {
    return help_row("", app->get_description(), 0);
  }
  std::string make_subcommand(const CLI::App* verb) const override {
    return help_row("  " + verb->get_name(), verb->get_description(), kVerbColumn);
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string meaning = option->get_description();
    for (const CLI::Option* other : option->get_needs()) {
      meaning += "; with " + other->get_name();
    }
    return help_row("  " + make_option_name(option, is_positional) + make_option_opts(option),
                    meaning, kFlagColumn);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string type = option->get_type_name();
    std::string text = type.substr(0, type.find(':'));  // after it come what checks say
    if (!text.empty()) text.insert(0, " ");
    if (text.empty() && option->get_default_str() == "true") text = "[=false]";
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (option->get_required()) text += " REQUIRED";
    return text;
  }

 private:
  static constexpr std::size_t kFlagColumn = 30;
  static constexpr std::size_t kVerbColumn = 14;

  std::vector<std::string> first_;
};

}  // namespace

void refuse_empty_values(CLI::App& app) {
  const auto filled = [](const std::string& value) {
    return std::string(value.empty() ? kNeedsAValue : "");
  };
  const auto either = [](const std::string& value) {
    const bool known = value.empty() || value == "true" || value == "false";
    return known ? std::string() : shown(value) + " is not true or false";
  };
  for (CLI::Option* option : app.get_options()) {
    option->check(option->get_items_expected_max() > 0 ? filled : either);
  }
  for (CLI::App* verb : app.get_subcommands({})) refuse_empty_values(*verb);
}

void show_first(CLI::App& app, std::vector<std::string> first) {
  app.set_help_all_flag("--help-all", "Print this help with every flag");
  app.formatter(std::make_shared<HelpFormatter>(std::move(first)));
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace shardwise
