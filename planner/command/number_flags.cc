#include "planner/command/number_flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "planner/command/command_words.h"

namespace shardwise {

CLI::Option* add_checked(CLI::App& app, const std::string& flag, const std::string& text,
                         std::function<std::string(std::string_view)> take) {
  const std::string name = flag.substr(flag.rfind(',') + 1);
  const auto set = [name, take = std::move(take)](const CLI::results_t& typed) {
    const std::string& value = typed.back();
    const std::string problem = value.empty() ? std::string(kNeedsAValue) : take(value);
    if (!problem.empty()) throw CLI::ValidationError(name, problem);
    return true;
  };
  return app.add_option(flag, CLI::callback_t(set), text)->type_name("N");
}

CLI::Option* add_number(CLI::App& app, const std::string& flag, double& value, double low,
                        double high, const std::string& text) {
  return add_checked(app, flag, text, [&value, low, high](std::string_view typed) {
    return read_number(typed, low, high, value);
  });
}

CLI::Option* add_size(CLI::App& app, const std::string& flag, Bytes& value, Bytes bare, Bytes low,
                      Bytes high, const std::string& text) {
  return add_checked(app, flag, text,
                     [&value, bare, low, high](std::string_view typed) {
                       return read_size(typed, bare, low, high, value);
                     })
      ->type_name("SIZE");
}

}  // namespace shardwise
