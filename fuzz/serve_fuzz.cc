// Any bytes as the body of a request, by the first byte of one or the other dialect. What is read
// must be within its limits, and an error must be the client's.
#include <cstdint>
#include <string_view>

#include "serve/line_filter.h"
#include "serve/ollama_request.h"
#include "serve/openai_request.h"

namespace {

using namespace strata::serve;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void check(const Generation& generation) {
  require(generation.choices >= 1 && generation.max_tokens >= -1);
  require(generation.top_logprobs >= -1 && generation.top_logprobs <= 20);
  for (const strata::TokenId token : generation.tokens) require(token >= 0);
  require(!generation.keep_alive || generation.keep_alive->count() >= -1);
  const bool required = generation.tool_choice.mode == ToolChoice::Mode::kRequired;
  require(!required || !generation.tools.empty());
  require(generation.format.kind == OutputFormat::Kind::kText || !generation.format.field.empty());
  auto messages = generation.messages;
  const LineFilter filter("{\n*a\n");
  const std::size_t lines = filter.apply(messages);
  require(lines > 0 || messages == generation.messages);
  require(filter.apply(messages) == 0);
}

template <typename Read>
bool refused(const Read& read) {
  if (read.ok()) return false;
  const Refusal refusal = read.status();
  require(refusal.http_status == 400 && !refusal.message.empty());
  return true;
}

void read_openai(const strata::serve::Answer<OpenAiRequest>& read) {
  if (refused(read)) return;
  require(!read->generations.empty());
  for (const Generation& generation : read->generations) check(generation);
}

void read_ollama(const strata::serve::Answer<OllamaRequest>& read) {
  if (!refused(read)) check(read->generation);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: read_openai(read_chat_request(body)); break;
    case 1: read_openai(read_completion_request(body)); break;
    case 2: read_ollama(read_ollama_chat(body)); break;
    default: read_ollama(read_ollama_generate(body)); break;
  }
  return 0;
}
