// What a user can change during a chat.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sampling_settings.h"

namespace strata::apps {

struct ChatSettings {
  SamplingSettings sampling;
  std::int32_t max_tokens = -1;  // of an answer; -1: no limit
  std::string system;
  std::optional<bool> think;  // nullopt: as the template has it
  bool hide_thinking = false;
  std::vector<std::string> stops;

  // Sets one parameter by its name; dashes count as underscores. Fails, nothing changed, on an
  // unknown name or a value that does not fit a vocabulary of that size.
  Status set(std::string_view name, std::string_view value, std::int32_t vocabulary);
  // One line per parameter.
  std::string describe() const;
};

// "on" or "off".
Result<bool> parse_switch(std::string_view text);

}  // namespace strata::apps
