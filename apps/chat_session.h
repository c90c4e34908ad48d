// A conversation: messages, the prompt a template makes of them, and what to do when they no longer
// fit the context. Knows neither terminal nor engine.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "text/prompt.h"

namespace strata::apps {

struct ChatLimits {
  std::int32_t context = 0;  // tokens of prompt and answer
  std::int32_t reserve = 1;  // tokens an answer should have room for, where turns may be dropped
  bool shift = false;        // drop the oldest turns rather than fail
};

class ChatSession {
 public:
  // Makes the prompt of a list of messages that ends with the user's.
  using Render = std::function<Result<Prompt>(const boost::json::array& messages)>;

  struct Turn {
    Prompt prompt;
    int dropped = 0;  // of the oldest turns, to make room
  };

  ChatSession(Render render, ChatLimits limits) : render_(std::move(render)), limits_(limits) {}

  void set_limits(ChatLimits limits) { limits_ = limits; }
  // Kept whatever else is dropped; an empty text is no message.
  void set_system(std::string text) { system_ = std::move(text); }

  // Adds the user's message. Fails, the conversation as it was, where the template refuses or the
  // context is full (kResourceExhausted).
  Result<Turn> ask(std::string_view text);
  // The context filled up during an answer of which `produced` tokens are there: drops at least one
  // turn, so that prompt and tokens have room to go on. kResourceExhausted where none is left or
  // shifting is off.
  Result<Turn> make_room(std::int32_t produced);
  // The answer to what was asked. One without any text withdraws the question.
  void answer(std::string_view reasoning, std::string_view content);
  void clear() { turns_.clear(); }

  int turns() const { return static_cast<int>(turns_.size()); }

 private:
  using Exchange = std::vector<boost::json::object>;  // the user's message and, in time, the answer

  Result<Turn> fit(std::int32_t produced, int dropped);
  boost::json::array messages() const;

  Render render_;
  ChatLimits limits_;
  std::string system_;
  std::vector<Exchange> turns_;
};

}  // namespace strata::apps
