#include "serve/refusal.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace strata::serve {
namespace {

struct RefusalKind {
  int http_status;
  const char* type;
};

RefusalKind kind_of(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnsupported: return {400, "invalid_request_error"};
    case StatusCode::kNotFound: return {404, "not_found_error"};
    case StatusCode::kResourceExhausted:
    case StatusCode::kCancelled: return {503, "overloaded_error"};
    case StatusCode::kOk:
    case StatusCode::kCorrupt:
    case StatusCode::kIo:
    case StatusCode::kInternal: break;
  }
  return {500, "server_error"};
}

}  // namespace

Refusal::Refusal(const Status& status)
    : Refusal(kind_of(status.code()).http_status, kind_of(status.code()).type, status.message()) {}

Refusal wrong_field(std::string field, std::string_view what) {
  std::string message = fmt::format("`{}` {}", field, what);
  return Refusal(400, "invalid_request_error", std::move(message), std::move(field));
}

Refusal wrong_field(std::string field, const Status& status) {
  std::string message = fmt::format("`{}`: {}", field, status.message());
  return Refusal(400, "invalid_request_error", std::move(message), std::move(field));
}

Refusal unknown_model(std::string_view name, std::string_view names) {
  Refusal refusal(
      404, "not_found_error",
      fmt::format("there is no model '{}' here; there are: {}", printable(name, 200), names),
      "model");
  refusal.code = "model_not_found";
  return refusal;
}

}  // namespace strata::serve
