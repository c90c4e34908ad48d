// How the parser and the evaluator stop. Thrown and caught inside this folder only: template.h
// turns it into a Status.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/status.h"

namespace strata::jinja {

struct TemplateError {
  StatusCode code = StatusCode::kInvalidArgument;
  std::string message;
  bool from_template = false;  // the message is the template's own, from raise_exception()
  int line = 0;                // in the template; 0 where the evaluator knows better
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw TemplateError{.message = fmt::format(format, std::forward<Args>(args)...)};
}

template <typename... Args>
[[noreturn]] void fail_limit(fmt::format_string<Args...> format, Args&&... args) {
  throw TemplateError{.code = StatusCode::kResourceExhausted,
                      .message = fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace strata::jinja
