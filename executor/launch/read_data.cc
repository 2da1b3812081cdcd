#include "executor/launch/read_data.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "executor/tokenizer/tokenizer.h"
#include "planner/spec/catalogue.h"

namespace shardwise::exec {
namespace {

Diagnostic wrong_use(const char* flag, std::string message, std::string hint) {
  return {"command line", 0, 0, flag, std::move(message), std::move(hint)};
}

/// The text of the catalogue's folders, for runs that name none.
std::string catalogue_text() {
  constexpr const char* kText = "data/founding-documents.txt";
  for (const std::filesystem::path& folder : catalogue_folders()) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(folder / kText, ignored)) return folder / kText;
  }
  return {};
}

Result<TokenStream> encoded(const std::string& path, const RunOptions& options) {
  const DataFormat format =
      options.data_format == DataFormat::detect ? detected_format(path) : options.data_format;
  if (format != DataFormat::text) {
    return wrong_use("--tokenizer",
                     fmt::format("is for text, {} has {} tokens", path,
                                 kDataFormats[static_cast<std::size_t>(format)]),
                     "leave it out, or say --data-format text");
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

}  // namespace

Result<TokenSequences> read_data(const Plan& plan, const RunOptions& options) {
  const std::string path = options.data.empty() ? catalogue_text() : options.data;
  if (path.empty()) {
    return wrong_use("--data", "names no text, and there is no catalogue that has one",
                     "name a text, or set SHARDWISE_CONFIGS to the folder configs/ of Shardwise");
  }
  Result<TokenStream> stream =
      options.tokenizer.empty() ? open_tokens(path, options.data_format) : encoded(path, options);
  if (!stream) return stream.problems();
  return TokenSequences::cut(*std::move(stream), plan.job.sequence_length, plan.model.vocab_size,
                             options.train.seed, path);
}

}  // namespace shardwise::exec
