#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/export/framework/framework.h"
#include "planner/export/launch/launcher.h"
#include "planner/export/shell/shell_text.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A setting as a file or a command line has it.
struct GivenSetting {
  std::string name;                // "--tp", "zero_optimization.stage"
  std::vector<std::string> words;  // what stands behind a flag; the value of a key
  bool list = false;               // of a key: an array
  bool object = false;             // of a key: an empty object
  bool open = false;               // stated, but nobody knows the value
  std::optional<JsonValue> value;  // of a key: as it was read; nothing of a flag
  std::string file;                // "command line" for words
  int line = 0;                    // 1-based; 0 of a command line
  int column = 0;
  std::string path;       // the flag, or the JSON pointer
  std::string kept_path;  // where another file states it: the pointer in the framework's own file
};

/// Statements of one or several files together, before their framework is known.
struct Configuration {
  std::string file;     // the first
  std::string program;  // that a command starts: "pretrain_gpt.py"; empty: it does not say
  std::vector<GivenSetting> settings;
  std::vector<GivenSetting> environment;
  std::vector<GivenSetting> nulls;     // keys whose value is null, which no setting takes
  std::vector<GivenSetting> launcher;  // keys of accelerate's YAML that flags of its launcher state
  std::vector<std::string> sourced;    // files that may set variables, and are not read
  std::vector<std::string> unread;     // variables that may be set where nothing is read
  std::map<std::string, std::string> facts;  // of the plan, that no setting says
  std::int64_t ranks = 0;                    // that the launcher starts; 0: it does not say
  Diagnostics notes;                         // what was not read, and may decide something
};

/// Reads JSON, YAML, a list of arguments or a script that starts a program with them: by the ending
/// of the name, and where that says nothing by the text. Files of ours and a model's config.json
/// are named as what they are.
/// A JSON or YAML that a script writes for its launcher or program is read where they read it.
/// \param file   the name, put into diagnostics
/// \param given  the other files of the job
/// \param start  what a script is started with
Result<Configuration> read_configuration(std::string_view text, const std::string& file,
                                         const GivenFiles& given = {},
                                         const ShellStart& start = {});

/// The words of a command line: launcher, program, arguments.
/// \param given  files of the job
Result<Configuration> configuration_of_words(const std::vector<std::string>& words,
                                             const GivenFiles& given = {});

/// Several files of one job: the later says what the earlier does not. Fails where two files state
/// different values for one setting.
Result<Configuration> joined(std::vector<Configuration> all);

/// Has several processes of `accelerate launch` that no file and no flag says the kind of, and
/// whose program no framework is known by, be those of --multi_gpu. A note says so. Source:
/// accelerate 1.15.0, commands/launch.py:1328
void assume_several_gpus(Configuration& job);

/// "--tensor-model-parallel-size" of "model_parallel.tensor_model_parallel_size": the argument that
/// a key of Megatron-LM's YAML is.
std::string flag_of_key(const std::string& key);

/// The framework whose settings these are; a problem where a file is of another one.
/// \param named  the name that a user gave it; empty: that with the most settings known by name
/// \param flag   where a problem of the name is said to be
Result<Framework> framework_of(const Configuration& configuration, const std::string& named,
                               const std::string& flag);

}  // namespace shardwise
