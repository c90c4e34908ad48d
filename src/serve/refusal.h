// Why a request gets no answer: what every protocol makes an error of its own form out of.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/status.h"

namespace strata::serve {

struct Refusal {
  int http_status = 500;
  std::string type;                  // as OpenAI names kinds of errors
  std::string message;               // a sentence to act on
  std::string field;                 // of the request, that is wrong; may be empty
  std::string code = {};             // OpenAI's name of this error; may be empty
  boost::json::object details = {};  // further members of the error
  // Whether the same request may fare better by itself: clients repeat what fails with 5xx.
  bool repeatable = true;

  Refusal(int http, std::string kind, std::string text, std::string at = {})
      : http_status(http), type(std::move(kind)), message(std::move(text)), field(std::move(at)) {}
  Refusal(const Status& status);  // REQUIRES: not ok. By its code.

  // 503 with a hint when to come again.
  bool is_overload() const { return http_status == 503; }
};

// As Result, but with a Refusal. Converts from Result's errors.
template <typename T>
class [[nodiscard]] Answer {
 public:
  Answer(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Answer(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}
  Answer(const Status& status) : Answer(Refusal(status)) {}

  bool ok() const { return state_.index() == 0; }
  Refusal status() const { return std::get<1>(state_); }  // REQUIRES: not ok()

  // REQUIRES: ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Refusal> state_;
};

// 400 for a field of the request.
Refusal wrong_field(std::string field, std::string_view what);
// Whatever its code. REQUIRES: not ok.
Refusal wrong_field(std::string field, const Status& status);

// 404 for a model that is not here. `names`: those that are, for people.
Refusal unknown_model(std::string_view name, std::string_view names);

// Returns the refusal that the expression gives, if any, from the enclosing function.
#define STRATA_CHECK(expression)                                               \
  do {                                                                         \
    if (std::optional<::strata::serve::Refusal> strata_refusal = (expression)) \
      return *std::move(strata_refusal);                                       \
  } while (false)

}  // namespace strata::serve
