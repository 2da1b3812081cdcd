#include "planner/export/shell/launch_environment.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "planner/export/shell/shell_variables.h"

namespace shardwise {
namespace {

/// Programs that start another one, by how they are told its variables.
enum class Starter : std::uint8_t { none, env, slurm, mpi, docker, apptainer };

std::optional<Starter> starter_of(std::string_view word) {
  constexpr std::pair<std::string_view, Starter> kNames[] = {
      {"env", Starter::env},
      {"srun", Starter::slurm},
      {"sbatch", Starter::slurm},
      {"mpirun", Starter::mpi},
      {"mpiexec", Starter::mpi},
      {"docker", Starter::docker},
      {"podman", Starter::docker},
      {"apptainer", Starter::apptainer},
      {"singularity", Starter::apptainer},
      {"torchrun", Starter::none},
      {"accelerate", Starter::none},
      {"deepspeed", Starter::none},
  };
  const std::string_view name = word.substr(word.rfind('/') + 1);
  for (const auto& [known, starter] : kNames) {
    if (name == known) return starter;
  }
  return name.starts_with("python") ? std::optional(Starter::none) : std::nullopt;
}

class EnvironmentReader {
 public:
  EnvironmentReader(const std::vector<ShellWord>& words, std::size_t count)
      : words_(words), count_(std::min(count, words.size())) {}

  LaunchEnvironment read(Starter starter) {
    for (; at_ < count_; ++at_) {
      if (const auto next = starter_of(text())) {
        starter = *next;
      } else if (starter == Starter::env) {
        if (!of_env()) starter = Starter::none;
      } else if (starter == Starter::slurm) {
        if (const auto value = value_of({"--export"})) set_list(*value);
      } else if (starter == Starter::apptainer) {
        if (const auto value = value_of({"--env"})) set_list(*value);
      } else if (starter == Starter::mpi) {
        of_mpi();
      } else if (starter == Starter::docker) {
        if (const auto value = value_of({"-e", "--env"})) set(*value);
        if (const auto file = value_of({"--env-file"})) {
          made_.files.push_back({*file, words_[at_].line, false});
        }
      }
    }
    return std::move(made_);
  }

 private:
  const std::string& text() const { return words_[at_].text; }

  /// The value of a flag: "--name=value", or the word behind it, at which the reader then is.
  std::optional<std::string> value_of(std::initializer_list<std::string_view> names) {
    const std::string_view word = text();
    for (const std::string_view name : names) {
      if (word == name && at_ + 1 < count_) return words_[++at_].text;
      if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
        return std::string(word.substr(name.size() + 1));
      }
    }
    return std::nullopt;
  }

  void set(std::string variable) {
    if (!is_assignment(variable)) return;  // handed on as it is
    made_.set.push_back({std::move(variable), words_[at_].line, words_[at_].column});
  }

  void set_list(std::string_view list) {
    while (true) {
      set(std::string(list.substr(0, list.find(','))));
      const std::size_t comma = list.find(',');
      if (comma == std::string_view::npos) return;
      list.remove_prefix(comma + 1);
    }
  }

  /// \returns whether the word is one of env's own
  bool of_env() {
    if (const auto name = value_of({"-u", "--unset"})) {
      made_.unset.push_back(*name);
      return true;
    }
    if (is_assignment(text())) set(text());
    return text().starts_with('-') || is_assignment(text());
  }

  void of_mpi() {
    if (const auto variable = value_of({"-x"})) return set(*variable);
    constexpr std::array<std::string_view, 4> kPairs = {"-genv", "-env", "--genv", "--env"};
    if (std::ranges::find(kPairs, text()) == kPairs.end() || at_ + 2 >= count_) return;
    at_ += 2;
    set(words_[at_ - 1].text + "=" + words_[at_].text);
  }

  const std::vector<ShellWord>& words_;
  std::size_t count_;
  std::size_t at_ = 0;
  LaunchEnvironment made_;
};

}  // namespace

LaunchEnvironment launch_environment(const std::vector<ShellWord>& words, std::size_t count) {
  return EnvironmentReader(words, count).read(Starter::none);
}

LaunchEnvironment job_environment(const std::vector<ShellWord>& directives) {
  return EnvironmentReader(directives, directives.size()).read(Starter::slurm);
}

}  // namespace shardwise
