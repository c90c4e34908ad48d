// The parameters of sampling as users meet them: by name, from the file, options or a chat.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "sample/sampling_params.h"
#include "text/tokenizer/tokenizer.h"

namespace strata::apps {

struct SamplingSettings {
  // Where a value comes from.
  enum class Origin { kDefault, kFile, kOption, kChat };

  SamplingParams params;
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
  std::map<std::string, Origin, std::less<>> origins;  // by name; absent: the default

  // By the names of describe(). Fails, nothing changed, on an unknown name (kNotFound) or a value
  // of another kind; does not check ranges.
  Status assign(std::string_view name, std::string_view value, Origin origin);
  // The defaults that the file recommends in general.sampling.*, but for what options gave. Returns
  // a sentence for each that has no effect.
  std::vector<std::string> take_from_file(const Metadata& metadata, std::int32_t vocabulary);
  // For requests: validated, with the breakers as tokens.
  Result<SamplingParams> resolve(const Tokenizer& tokenizer) const;
  // One line per parameter: name, value and, where it is not the default, its origin.
  std::string describe() const;
};

// --temperature, --top-k, ..., --seed, --greedy. Without --seed each run draws its own.
void add_sampling_options(CLI::App& command, SamplingSettings& settings);

}  // namespace strata::apps
