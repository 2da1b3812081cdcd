#include "cli/texts/man_page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <sstream>
#include <string_view>

namespace shardwise::cli {
namespace {

/// `text` as roff prints it: hyphens that can be copied, no requests, characters beyond ASCII by
/// number. \pre text is UTF-8
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool begins = i == 0 || text[i - 1] == '\n';
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      const int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
      std::uint32_t code = c & (0x3FU >> more);
      for (int k = 0; k < more && i + 1 < text.size(); ++k) {
        code = (code << 6U) | (static_cast<unsigned char>(text[++i]) & 0x3FU);
      }
      out += fmt::format("\\[u{:04X}]", code);
    }
  }
  return out;
}

std::string options_of_group(const CLI::App& app, const std::string& group) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() != group) continue;
    const std::string name =
        option->nonpositional() ? option->get_name(false, true) : option->get_name(true);
    const std::string type = option->get_type_name();
    const std::string value = option->get_type_size() == 0 ? "" : type.substr(0, type.find(':'));
    text += fmt::format(".TP\n\\fB{}\\fR", roff(name));
    if (!value.empty()) text += fmt::format(" \\fI{}\\fR", roff(value));
    text += "\n" + roff(option->get_description()) + "\n";
  }
  return text;
}

std::string flags_text(const CLI::App& app) {
  std::string text;
  for (const std::string& group : app.get_groups()) {
    const std::string options = options_of_group(app, group);
    if (options.empty()) continue;
    text += fmt::format(".PP\n{}\n", roff(group)) + options;
  }
  return text;
}

std::string as_typed(const std::string& footer) {
  return footer.empty() ? "" : ".PP\n.nf\n" + roff(footer) + "\n.fi\n";
}

}  // namespace

std::string man_page(const CLI::App& app, const std::string& version) {
  std::string text = fmt::format(
      ".TH SHARDWISE 1 \"\" \"shardwise {0}\" \"User Commands\"\n"
      ".SH NAME\n"
      "shardwise \\- plan, simulate and run the distributed training of transformers\n"
      ".SH SYNOPSIS\n"
      ".B shardwise\n.I verb\n.RI [ flags ]\n"
      ".SH DESCRIPTION\n{1}.\n",
      roff(version), roff(app.get_description()));
  text += flags_text(app);
  text += ".SH VERBS\n";
  for (const CLI::App* verb : app.get_subcommands({})) {
    text += fmt::format(".SS shardwise {}\n{}\n", roff(verb->get_name()),
                        roff(verb->get_description()));
    text += flags_text(*verb) + as_typed(verb->get_footer());
  }
  text +=
      ".SH ENVIRONMENT\n"
      ".TP\n.B SHARDWISE_CONFIGS\nFolder of a catalogue that comes before the installed one\n"
      ".TP\n.B NO_COLOR\nPrint without colour\n"
      ".SH NOTES\n" +
      as_typed(app.get_footer()).substr(4);
  return text;
}

}  // namespace shardwise::cli
