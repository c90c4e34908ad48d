// One event of a streamed answer of the OpenAI protocol.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strata::apps {

struct AnswerChunk {
  std::string text;  // of its choices: text, content and reasoning
  bool calls_tools = false;
  bool says_more = false;  // an error or usage
};

// Nothing where `data` is no JSON object.
std::optional<AnswerChunk> read_chunk(std::string_view data);

}  // namespace strata::apps
