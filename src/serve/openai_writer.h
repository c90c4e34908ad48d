// Answers of the OpenAI protocol, whole or as server-sent events.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "serve/delivery.h"
#include "serve/model.h"

namespace strata::serve {

struct OpenAiStyle {
  bool chat = true;  // else completions
  bool stream = false;
  bool include_usage = false;  // of a stream
  bool logprobs = false;
  std::vector<std::string> warnings;
};

std::unique_ptr<AnswerWriter> openai_writer(const ServedModel& model, OpenAiStyle style);

// {"error": {...}}
http::HttpResponse openai_error(const Refusal& refusal);
boost::json::object openai_usage(const Usage& usage);

}  // namespace strata::serve
