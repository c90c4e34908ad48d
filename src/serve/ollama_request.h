// Requests of the Ollama protocol.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "serve/generation.h"

namespace strata::serve {

struct OllamaRequest {
  Generation generation;
  bool chat = true;  // else generate
  bool stream = true;
  bool load_only = false;  // no prompt: the model is loaded, or with keep_alive 0 unloaded
};
Answer<OllamaRequest> read_ollama_chat(std::string_view body);
Answer<OllamaRequest> read_ollama_generate(std::string_view body);

// A number of seconds, or a duration as Go writes it ("5m", "1h30m", "300ms"); negative: for ever.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace strata::serve
