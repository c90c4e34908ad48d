// Errors as values. A Status carries a code and one sentence a user can act on.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace strata {

enum class StatusCode {
  kOk,
  kInvalidArgument,    // the caller's request or option is wrong
  kNotFound,           // a file, name or key is not there
  kCorrupt,            // bytes from outside break their own format's rules
  kUnsupported,        // well-formed, but Strata does not do it
  kResourceExhausted,  // a budget, limit or the machine does not suffice
  kIo,                 // the operating system refused a read or write
  kCancelled,          // somebody asked for it to stop
  kInternal,           // a broken invariant of Strata itself
};

std::string_view to_string(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same status with `where` put in front of the message: "where: message".
  Status with_context(std::string_view where) const {
    if (ok()) return *this;
    return Status(code_, fmt::format("{}: {}", where, message_));
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

template <typename... Args>
Status make_error(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status invalid_argument(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(StatusCode::kInvalidArgument, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status not_found(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(StatusCode::kNotFound, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status corrupt(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(StatusCode::kCorrupt, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(StatusCode::kUnsupported, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status resource_exhausted(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(StatusCode::kResourceExhausted, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status io_error(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(StatusCode::kIo, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status internal_error(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(StatusCode::kInternal, format, std::forward<Args>(args)...);
}

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {
    if (std::get<1>(state_).ok()) std::get<1>(state_) = internal_error("ok status without a value");
  }

  bool ok() const { return state_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }

  // REQUIRES: ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace strata

#define STRATA_CONCAT_INNER(a, b) a##b
#define STRATA_CONCAT(a, b) STRATA_CONCAT_INNER(a, b)

// Returns from the enclosing function when the Status expression is an error.
#define STRATA_TRY(expression)                                                                    \
  do {                                                                                            \
    if (::strata::Status strata_status = (expression); !strata_status.ok()) return strata_status; \
  } while (false)

// Assigns the value of a Result to `target` (a declaration or an lvalue), or returns its error.
#define STRATA_ASSIGN(target, expression) \
  STRATA_ASSIGN_INNER(STRATA_CONCAT(strata_result_, __LINE__), target, expression)
#define STRATA_ASSIGN_INNER(result, target, expression) \
  auto result = (expression);                           \
  if (!result.ok()) return result.status();             \
  target = std::move(result).value()
