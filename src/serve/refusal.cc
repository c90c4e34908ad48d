#include "serve/refusal.h"

namespace strata::serve {
namespace {

struct Kind {
  int http_status;
  const char* type;
};

Kind kind_of(StatusCode code) {
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

}  // namespace strata::serve
