#include "executor/launch/run_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <utility>

#include "executor/launch/command.h"
#include "executor/tokenizer/tokenizer.h"
#include "executor/weights/save_weights.h"
#include "planner/files/process_memory.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/json/regular_file.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/sha256.h"

namespace shardwise::exec {
namespace {

/// The text of the catalogue's folders, for runs that name none.
std::string catalogue_text() {
  constexpr const char* kText = "data/founding-documents.txt";
  for (const std::filesystem::path& folder : catalogue_folders()) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(folder / kText, ignored)) return folder / kText;
  }
  return {};
}

/// What --data-format says, one of kDataFormats.
DataFormat format_of(const RunOptions& options) {
  const auto named = std::ranges::find(kDataFormats, options.data_format);
  return static_cast<DataFormat>(named - kDataFormats.begin());
}

Result<TokenStream> encoded(const std::string& path, const RunOptions& options) {
  const DataFormat said = format_of(options);
  const DataFormat format = said == DataFormat::detect ? detected_format(path) : said;
  if (format != DataFormat::text) {
    return wrong_use("--tokenizer",
                     fmt::format("is for text, {} has {} tokens", path,
                                 kDataFormats[static_cast<std::size_t>(format)]),
                     "leave it out, or add --data-format text");
  }
  const Result<Tokenizer> tokenizer = Tokenizer::read(options.tokenizer);
  if (!tokenizer) return tokenizer.problems();
  const Result<MappedFile> file = MappedFile::open(path, "--data");
  if (!file) return file.problems();
  Result<std::vector<std::uint32_t>> tokens = tokenizer->encode(file->text());
  if (!tokens) {
    Diagnostic problem = tokens.problems().front();
    problem.file = path;
    problem.path = "--data";
    return problem;
  }
  return TokenStream(*std::move(tokens));
}

struct Data {
  TokenSequences sequences;
  DataIdentity identity;
};

Result<Data> read_data(const Plan& plan, const RunOptions& options) {
  const std::string path = options.data.empty() ? catalogue_text() : options.data;
  if (path.empty()) {
    return wrong_use("--data", "is missing, and no catalogue has a text",
                     "name a text, or set SHARDWISE_CONFIGS to the folder configs/ of Shardwise");
  }
  Result<TokenStream> stream =
      options.tokenizer.empty() ? open_tokens(path, format_of(options)) : encoded(path, options);
  if (!stream) return stream.problems();
  DataIdentity identity;
  identity.source = path;
  if (!options.tokenizer.empty()) {
    const Result<std::string> text = read_regular_file(options.tokenizer);
    if (!text) return text.problems();
    identity.tokenizer = sha256(*text);
  }
  identity.tokens = stream->tokens();
  identity.digest = token_digest(*stream);
  identity.sequence_length = plan.job.sequence_length;
  identity.global_batch_size = plan.job.batch_for(plan.layout.dp(), plan.layout.micro_batch_size);
  Result<TokenSequences> sequences =
      TokenSequences::cut(*std::move(stream), plan.job.sequence_length, plan.model.vocab_size,
                          options.train.seed, path);
  if (!sequences) return sequences.problems();
  return Data{*std::move(sequences), std::move(identity)};
}

/// Links in the folder of --save-weights, as a cache of models has them: what they lead to is not
/// this run's.
void refuse_links(const std::string& folder, Diagnostics& problems) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.is_symlink(ignored) || !is_file_of_weights(entry.path().filename().string()))
      continue;
    problems.push_back(wrong_use(
        "--save-weights",
        fmt::format("{} is a symbolic link, which is not followed here", entry.path().string()),
        "remove it, or name another folder"));
  }
}

/// A folder that cannot be made is known before the training that would be lost.
void make_weights_folder(const std::string& folder, Diagnostics& problems) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const bool writable = !error && ::access(folder.c_str(), W_OK | X_OK) == 0;
  if (!writable) {
    problems.push_back(
        wrong_use("--save-weights", fmt::format("{} is not a writable folder", folder), ""));
  }
  refuse_links(folder, problems);
}

Result<RunInput> read_all(const Plan& plan, const RunOptions& options, bool resumed) {
  Diagnostics problems;
  const auto gather = [&](const Diagnostics& more) {
    problems.insert(problems.end(), more.begin(), more.end());
  };
  Result<Data> data = read_data(plan, options);
  if (!data) gather(data.problems());
  std::optional<HfWeights> weights;
  // Of a restarted run that had no checkpoint yet, --resume auto may begin again.
  const bool restarts = options.resume == "auto";
  if (!options.init_from.empty() && !options.resume.empty() && !restarts) {
    problems.push_back(wrong_use("--init-from", "a checkpoint that is resumed has weights",
                                 "leave --init-from or --resume out"));
  } else if (!options.init_from.empty() && !resumed) {
    Result<HfWeights> stored = HfWeights::open(options.init_from, plan);
    if (stored) {
      weights = *std::move(stored);
    } else {
      gather(stored.problems());
    }
  }
  if (!options.save_weights.empty()) make_weights_folder(options.save_weights, problems);
  if (!problems.empty()) return problems;
  return RunInput{std::move(data->sequences), std::move(data->identity), std::move(weights)};
}

}  // namespace

Result<RunInput> read_input(const Plan& plan, const RunOptions& options, bool resumed) {
  try {
    const Bytes limit =
        options.memory_limit > Bytes(0) ? options.memory_limit : usual_memory_limit();
    const BoundedMemory bounded(limit, kMemoryLimitFlag);
    return read_all(plan, options, resumed);
  } catch (const std::bad_alloc&) {
    throw IoError("reading data and tokenizer: " + out_of_memory());
  }
}

}  // namespace shardwise::exec
