// Reads one tool call from where it starts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "text/tool_calls.h"

namespace strata {

class CallReader {
 public:
  enum class Step : std::uint8_t {
    kMore,
    kDone,        // the call ends with this byte
    kDoneBefore,  // it ended before this byte
    kBroken,      // it is none, or malformed: this byte cannot follow
    kMalformed,   // it ends with this byte, but not as it should
  };

  CallReader() = default;
  CallReader(const CallReader&) = delete;
  CallReader& operator=(const CallReader&) = delete;
  virtual ~CallReader() = default;

  virtual Step push(char byte) = 0;
  // Whether the text could end here, with the call whole.
  virtual bool whole() const = 0;

  // Empty until it is certain that there is a call.
  const std::string& name() const { return name_; }
  // What has come of the arguments since it was asked last; only where there is a name.
  std::string take_arguments() { return std::exchange(arguments_, {}); }

 protected:
  std::string name_;
  std::string arguments_;
};

// From behind the tag, or from the bracket of an object without one. `bare`: there is nothing but
// the object to tell a call by, so that it must be complete and, where `tools` are given, of one
// of them. `tools` must outlive the reader.
std::unique_ptr<CallReader> read_json_call(std::span<const Tool> tools, bool bare);
// From behind <tool_call>, or from behind <function= (`in_function`). Values are read by the
// schemas of `tools`.
std::unique_ptr<CallReader> read_tagged_call(std::span<const Tool> tools, bool in_function);

}  // namespace strata
