#include "hub/http.h"

#include <algorithm>
#include <thread>

#include "base/ascii.h"
#include "base/printable.h"

namespace strata {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kLeastBytesPerSecond = 1024;
constexpr long kMostRedirects = 8;
constexpr std::chrono::seconds kLongestWait{60};

struct Transfer {
  CURL* handle;
  const Http::Take* take;
  HttpAnswer answer;
  Status status;
};

// Headers of every answer come here, redirects included; the last answer's count.
std::size_t on_header(char* data, std::size_t, std::size_t bytes, void* user) {
  HttpAnswer& answer = static_cast<Transfer*>(user)->answer;
  const std::string_view line = trimmed({data, bytes});
  if (line.starts_with("HTTP/")) {
    HttpAnswer next;
    next.linked_etag = std::move(answer.linked_etag);
    answer = std::move(next);
    return bytes;
  }
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string name = lower_case(line.substr(0, colon));
  const std::string value(trimmed(line.substr(std::min(colon + 1, line.size()))));
  if (name == "etag") answer.etag = value;
  if (name == "last-modified") answer.last_modified = value;
  if (name == "content-range") answer.content_range = value;
  if (name == "content-type") answer.content_type = value;
  if (name == "x-linked-etag" && answer.linked_etag.empty()) answer.linked_etag = value;
  return bytes;
}

void complete(Transfer& transfer) {
  HttpAnswer& answer = transfer.answer;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &answer.status);
  const char* url = nullptr;
  curl_easy_getinfo(transfer.handle, CURLINFO_EFFECTIVE_URL, &url);
  if (url != nullptr) answer.url = url;
  curl_off_t number = -1;
  curl_easy_getinfo(transfer.handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &number);
  if (number >= 0) answer.content_length = static_cast<Bytes>(number);
  number = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RETRY_AFTER, &number);
  if (number > 0) answer.retry_after = std::chrono::seconds(number);
}

std::size_t on_body(char* data, std::size_t, std::size_t bytes, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  complete(transfer);
  transfer.status =
      (*transfer.take)(transfer.answer, {reinterpret_cast<const std::uint8_t*>(data), bytes});
  return transfer.status.ok() ? bytes : 0;
}

Status transport_error(CURLcode code, const std::string& url, const char* detail) {
  const std::string reason = printable(*detail != '\0' ? detail : curl_easy_strerror(code), 300);
  const std::string where = shown_url(url);
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return invalid_argument(
          "{}: refused: {}; only http and https addresses are fetched, and "
          "https never leads to http",
          where, reason);
    case CURLE_TOO_MANY_REDIRECTS:
      return corrupt(
          "{}: the server leads from one address to the next ({}); is the address right?", where,
          reason);
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return not_found(
          "{}: no server can be reached ({}); is this machine online, and is the "
          "address right?",
          where, reason);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return unsupported(
          "{}: the server cannot prove who it is ({}); are ca-certificates installed and the clock "
          "right? Set SSL_CERT_FILE to trust the certificates of another file",
          where, reason);
    case CURLE_OPERATION_TIMEDOUT:
      return io_error("{}: the connection stalled ({}); try again later", where, reason);
    default: return io_error("{}: the transfer failed: {}", where, reason);
  }
}

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, FreeUrl>;

std::string url_part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string out(text);
  curl_free(text);
  return out;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

}  // namespace

Result<Http> Http::create(const HttpOptions& options) {
  CURL* handle = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : nullptr;
  if (handle == nullptr) return resource_exhausted("libcurl could not be started");
  return Http(options, handle);
}

Result<HttpAnswer> Http::get(const HttpRequest& request, const Take& take) {
  CURL* handle = handle_.get();
  curl_easy_reset(handle);
  const bool secure = lower_case(request.url).starts_with("https:");
  HeaderList headers;
  for (const std::string& header : request.headers)
    if (curl_slist* list = curl_slist_append(headers.get(), header.c_str())) {
      (void)headers.release();
      headers.reset(list);
    }
  Transfer transfer{handle, &take, {}, {}};
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, kMostRedirects);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT,
                   std::min<long>(kConnectSeconds, options_.stall.count()));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall.count()));
  if (!options_.ca_file.empty()) curl_easy_setopt(handle, CURLOPT_CAINFO, options_.ca_file.c_str());
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "strata");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  const std::string range = fmt::format("{}-", request.offset);
  if (request.offset > 0) curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  if (request.post) {
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.post->size()));
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.post->data());
  }
  if (request.direct) curl_easy_setopt(handle, CURLOPT_PROXY, "");
  const CURLcode code = curl_easy_perform(handle);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, nullptr);
  STRATA_TRY(transfer.status);
  if (code != CURLE_OK) return transport_error(code, request.url, detail);
  complete(transfer);
  return std::move(transfer.answer);
}

Result<Http::Text> Http::get_text(const HttpRequest& request, Bytes limit) {
  for (int failures = 0;; ++failures) {
    Text text;
    const auto answer =
        get(request, [&](const HttpAnswer&, std::span<const std::uint8_t> bytes) -> Status {
          text.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          if (text.body.size() <= limit) return {};
          return resource_exhausted("{}: the answer exceeds the limit of {} MiB",
                                    shown_url(request.url), limit / kMiB);
        });
    if (answer.ok() && answer->status == 200) {
      text.answer = *answer;
      return text;
    }
    Status status = answer.ok() ? answer_error(*answer, request.url) : answer.status();
    if (status.code() != StatusCode::kIo || failures >= options_.retries) return status;
    auto retry_after = answer.ok() ? answer->retry_after : std::nullopt;
    if (!wait_before_retry(failures + 1, retry_after).ok()) return status;
  }
}

Status Http::wait_before_retry(int failures, std::optional<std::chrono::seconds> retry_after) {
  const std::chrono::seconds usual(failures < 2 ? 0 : 1 << std::min(failures - 2, 5));
  const std::chrono::seconds wait = retry_after.value_or(usual);
  if (wait > kLongestWait) return io_error("the server asks to come back in {} s", wait.count());
  std::this_thread::sleep_for(wait);
  return {};
}

Status answer_error(const HttpAnswer& answer, const std::string& url) {
  const std::string where = shown_url(url);
  const long status = answer.status;
  switch (status) {
    case 401:
    case 403:
      return invalid_argument(
          "{}: the server answered {}: this needs permission; for a hub, accept "
          "the model's licence on its page and set HF_TOKEN to your token",
          where, status);
    case 404:
    case 410:
      return not_found("{}: the server answered {}: there is nothing of that name", where, status);
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return io_error("{}: the server answered {}{}; try again later", where, status,
                      status == 429 ? " (too many requests)" : "");
    default: return unsupported("{}: the server answered {}, which is of no use", where, status);
  }
}

std::string shown_url(const std::string& url) {
  const Url parsed(curl_url());
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    return printable(url.substr(0, url.find_first_of("?#@")), 300);
  for (const CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT})
    curl_url_set(parsed.get(), part, nullptr, 0);
  return printable(url_part(parsed.get(), CURLUPART_URL), 300);
}

Result<std::string> resolve_url(const std::string& base, const std::string& reference) {
  const Url parsed(curl_url());
  if (curl_url_set(parsed.get(), CURLUPART_URL, base.c_str(), 0) == CURLUE_OK &&
      curl_url_set(parsed.get(), CURLUPART_URL, reference.c_str(), 0) == CURLUE_OK)
    return url_part(parsed.get(), CURLUPART_URL);
  return corrupt("{}: the page leads to '{}', which is no address", shown_url(base),
                 printable(reference, 200));
}

std::string escaped_path(std::string_view path) {
  std::string out;
  for (const std::string_view part : split(path, '/')) {
    char* escaped = curl_easy_escape(nullptr, part.data(), static_cast<int>(part.size()));
    if (escaped == nullptr) return {};
    out += (out.empty() ? "" : "/") + std::string(escaped);
    curl_free(escaped);
  }
  return out;
}

std::string decoded_file_name(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  const std::string last = path.substr(path.rfind('/') + 1);
  int bytes = 0;
  char* decoded = curl_easy_unescape(nullptr, last.c_str(), static_cast<int>(last.size()), &bytes);
  if (decoded == nullptr) return {};
  std::string out(decoded, static_cast<std::size_t>(bytes));
  curl_free(decoded);
  return out;
}

}  // namespace strata
