// A request for an answer, whatever its protocol: what it asks for, and what the engine is told.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/delivery.h"
#include "serve/fields.h"
#include "serve/model.h"
#include "serve/refusal.h"
#include "text/tool_calls.h"

namespace strata::serve {

struct ToolChoice {
  enum class Mode : std::uint8_t { kAuto, kNone, kRequired };
  Mode mode = Mode::kAuto;
  std::string name;  // the one tool that is required; empty: any
};

struct OutputFormat {
  enum class Kind : std::uint8_t { kText, kJsonObject, kJsonSchema, kGrammar };
  Kind kind = Kind::kText;
  boost::json::value schema;
  std::string grammar;  // GBNF
  std::string field;    // of the request, for errors
  bool strict = false;  // nothing of the schema may be left out
};

// Priorities of requests. Background ones wait for all others.
constexpr std::int32_t kInteractive = 0;
constexpr std::int32_t kBackground = -1;

struct Generation {
  std::string model;
  // The prompt is one of these: messages, a text, tokens.
  boost::json::array messages;
  std::string text;
  std::vector<TokenId> tokens;
  enum class Source : std::uint8_t { kMessages, kText, kTokens } source = Source::kMessages;

  boost::json::value tool_list;  // as messages' templates take it
  std::vector<Tool> tools;
  ToolChoice tool_choice;
  bool parallel_tools = true;
  std::optional<bool> think;
  std::string_view thinking_field;      // of the request, where it asks for thinking
  boost::json::object template_inputs;  // further variables of the template

  OutputFormat format;
  boost::json::object sampling;  // by the names of sampling_fields(), and some more
  std::string sampling_path;     // before these names in errors
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::vector<std::string> stops;
  std::int32_t max_tokens = -1;
  std::int32_t choices = 1;
  std::int32_t top_logprobs = -1;
  bool report_prompt = false;    // AnswerWriter::prompt is called
  bool prompt_logprobs = false;  // with log-probabilities, which is slow
  bool ignore_end = false;       // the tokens that end answers do not

  std::optional<std::chrono::milliseconds> keep_alive;
  std::int32_t priority = kInteractive;
  std::uint64_t client = 0;  // whose turn it is, see client_of()
  std::string user;          // as the request calls it
  std::string cache_salt;
  std::vector<std::string> warnings;
  std::chrono::steady_clock::time_point arrival = std::chrono::steady_clock::now();
};

// Reads the members that name sampling parameters from a request into `generation.sampling`, so
// that they are known. Ranges are checked with the model.
void take_sampling(Fields& fields, const boost::json::object& object, Generation& generation);
// `priority`, as vLLM has it: 0 goes first, and the greater, the later.
std::optional<Refusal> take_priority(Fields& fields, Generation& generation);

// What is asked of the engine.
struct Prepared {
  Request request;
  AnswerOptions text;
  std::vector<TokenId> reported_prompt;  // see AnswerSetup::prompt
  std::vector<std::string> warnings;     // for the client
};
// `generations` are of one request, which may not ask for too much together.
Answer<std::vector<Prepared>> prepare(const ServedModel& model,
                                      const std::vector<Generation>& generations);

// What the template makes of the messages. REQUIRES: there are some.
Answer<std::vector<RenderedSpan>> render_chat(const ServedModel& model,
                                              const Generation& generation);
// The prompt alone.
Answer<Prompt> prompt_of(const ServedModel& model, const Generation& generation);

}  // namespace strata::serve
