// Bytes of a connection become a request, in steps: first its head, then its body.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/message.h"
#include "serve/http/options.h"

namespace strata::http {

// A request, and what of it concerns the connection only.
struct IncomingRequest {
  HttpRequest request;
  std::string authority;  // the host that the client believes it talks to; may be empty
  bool is_head = false;
  bool is_http11 = false;
  bool keep_alive = false;
  bool expects_continue = false;
  std::optional<Bytes> content_length;  // nothing: no body, or a chunked one
};

class RequestParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  explicit RequestParser(const ServerOptions& options);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Reads of `bytes` what it can and returns how many that were; the rest comes again, with what
  // follows it. Stops where the head ends, and where the request ends. REQUIRES: kHead or kBody.
  std::size_t feed(std::string_view bytes);

  State state() const;
  // Complete in kDone; in kBody the head is.
  IncomingRequest& incoming();
  // What to answer in kFailed.
  HttpResponse refusal() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata::http
