// HTTP over libcurl: http and https only, a few redirects, and no connection that hangs for ever.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace strata {

struct HttpOptions {
  std::chrono::seconds stall{30};  // below 1 KiB/s until a connection counts as dead
  int retries = 5;                 // in a row without progress
  std::string ca_file;             // whose certificates are trusted; empty: the system's
};

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;      // "Name: value"; Authorization stays with the first host
  Bytes offset = 0;                      // > 0 asks for the bytes from there on
  std::optional<std::string> post = {};  // sent by POST
  bool direct = false;                   // past any proxy
};

struct HttpAnswer {
  long status = 0;
  std::string url;  // after redirects
  std::string etag;
  std::string last_modified;
  std::string content_range;
  std::string content_type;
  std::string linked_etag;  // X-Linked-Etag of the first answer that has one
  std::optional<Bytes> content_length;
  std::optional<std::chrono::seconds> retry_after;
};

// Of one thread. An error of kind kIo may pass when tried again; kNotFound: no server there.
class Http {
 public:
  // Gets the body as it comes; may end the transfer with an error.
  using Take = std::function<Status(const HttpAnswer&, std::span<const std::uint8_t>)>;

  static Result<Http> create(const HttpOptions& options);

  const HttpOptions& options() const { return options_; }

  // One try. Any status of the server's is an answer, not an error.
  Result<HttpAnswer> get(const HttpRequest& request, const Take& take);

  struct Text {
    std::string body;
    HttpAnswer answer;
  };
  // The body of a 200; tried again as `options` say.
  Result<Text> get_text(const HttpRequest& request, Bytes limit);

  // Sleeps before the next try, `failures` in a row having gone before; fails where the server asks
  // for more patience than a user has.
  static Status wait_before_retry(int failures, std::optional<std::chrono::seconds> retry_after);

 private:
  struct Close {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  Http(const HttpOptions& options, CURL* handle) : options_(options), handle_(handle) {}

  HttpOptions options_;
  std::unique_ptr<CURL, Close> handle_;
};

// What a status other than success means; kIo where it may pass.
Status answer_error(const HttpAnswer& answer, const std::string& url);

// An address for messages: without user, password, query and fragment.
std::string shown_url(const std::string& url);

// `reference`, absolute or relative, as found on the page at `base`.
Result<std::string> resolve_url(const std::string& base, const std::string& reference);

// Every part of a relative path with %XX for what addresses cannot hold.
std::string escaped_path(std::string_view path);

// The last part of the path of an address, absolute or relative, with %XX decoded.
std::string decoded_file_name(const std::string& url);

}  // namespace strata
