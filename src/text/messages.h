// Conversations as clients send them, in the one form that chat templates are given.
#pragma once

#include <boost/json/array.hpp>

#include "base/status.h"

namespace strata {

// Reads the `messages` of the OpenAI and Ollama protocols, liberally:
// - content is a string or a list of text parts, or missing where an assistant has other things
//   to say; other parts and `images` are refused;
// - `arguments` of tool calls are an object, or a string that holds one, and become an object;
//   missing ids and types are filled in;
// - a tool's result gets the id and the name of the call that it answers, where it lacks them;
// - what an assistant thought becomes `reasoning_content`.
// kInvalidArgument, naming the field, for all that is wrong. Whether roles may follow each other
// so is the template's to say.
Result<boost::json::array> read_messages(const boost::json::value& messages);

}  // namespace strata
