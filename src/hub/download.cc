#include "hub/download.h"

#include <charconv>
#include <filesystem>

#include "base/ascii.h"
#include "base/file.h"
#include "base/memory_ledger.h"
#include "base/printable.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kProgressThatCounts = kMiB;  // less does not buy another retry

std::optional<Bytes> whole_number(std::string_view text) {
  Bytes value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What If-Range takes: a strong ETag, or else a date.
std::string validator_of(const HttpAnswer& answer) {
  const bool strong = answer.etag.starts_with('"');
  return strong ? answer.etag : answer.last_modified;
}

std::string linked_sha256(const HttpAnswer& answer) {
  std::string_view text = answer.linked_etag;
  if (text.size() > 2 && text.starts_with('"') && text.ends_with('"'))
    text = text.substr(1, text.size() - 2);
  return as_sha256(text);
}

class Download {
 public:
  Download(Http& http, const RemoteFile& remote, const std::string& target, PartialFile& file,
           const PullHooks& hooks)
      : http_(http),
        remote_(remote),
        file_(file),
        hooks_(hooks),
        sha256_(remote.sha256),
        name_(fs::path(target).filename().string()),
        total_(remote.bytes) {}

  // Until the whole file is there; unchecked.
  Status run() {
    if (file_.size() > 0 && !resumable()) STRATA_TRY(file_.restart({}));
    if (file_.size() > 0)
      hooks_.note(
          fmt::format("going on with {} at {}", printable(name_), human_bytes(file_.size())));
    Bytes mark = file_.size();
    for (int failures = 0; !(total_ && file_.size() == *total_) || file_.size() == 0;) {
      std::optional<std::chrono::seconds> retry_after;
      Status status = attempt(retry_after);
      if (status.ok() && (!total_ || file_.size() == *total_)) break;
      if (!status.ok() && !may_pass(status)) return status;
      failures = file_.size() >= mark + kProgressThatCounts ? 1 : failures + 1;
      mark = std::max(mark, file_.size());
      Status last = status.ok() ? ended_early() : status;
      if (failures > http_.options().retries) return last;
      if (const Status wait = Http::wait_before_retry(failures, retry_after); !wait.ok())
        return last.with_context(wait.message());
      hooks_.note(fmt::format("{}; trying again", last.message()));
    }
    return {};
  }

  const std::string& sha256() const { return sha256_; }

 private:
  bool resumable() const {
    return file_.origin().source == remote_.source &&
           (!file_.origin().validator.empty() || !sha256_.empty()) &&
           file_.size() <= total_.value_or(~Bytes{0});
  }

  // No server there is a passing trouble once it was there.
  bool may_pass(const Status& status) const {
    return status.code() == StatusCode::kIo || (status.code() == StatusCode::kNotFound && begun_);
  }

  Status ended_early() const {
    return io_error("{}: the server sent {} of {} bytes", shown_url(remote_.url), file_.size(),
                    *total_);
  }

  Status attempt(std::optional<std::chrono::seconds>& retry_after) {
    HttpRequest request{remote_.url, remote_.headers, file_.size()};
    if (request.offset > 0 && !file_.origin().validator.empty())
      request.headers.push_back("If-Range: " + file_.origin().validator);
    answered_ = false;
    const auto answer = http_.get(
        request, [&](const HttpAnswer& start, std::span<const std::uint8_t> bytes) -> Status {
          if (!is_content(start)) return {};  // the words of an error
          if (!answered_) STRATA_TRY(begin(start));
          if (total_ && bytes.size() > *total_ - file_.size())
            return corrupt("{}: the server sends more than the {} bytes there should be",
                           shown_url(remote_.url), *total_);
          if (!total_) STRATA_TRY(check_space());
          STRATA_TRY(file_.append(bytes));
          hooks_.progress(name_, file_.size(), total_.value_or(0));
          return {};
        });
    STRATA_TRY(answer.status());
    if (answer->status == 416) return past_the_end(*answer);
    if (!is_content(*answer)) {
      retry_after = answer->retry_after;
      return answer_error(*answer, remote_.url);
    }
    return answered_ ? Status() : begin(*answer);
  }

  static bool is_content(const HttpAnswer& answer) {
    return answer.status == 200 || answer.status == 206;
  }

  // The first bytes of an answer: from the start of the file, or from where it broke off.
  Status begin(const HttpAnswer& answer) {
    answered_ = begun_ = true;
    if (sha256_.empty()) sha256_ = linked_sha256(answer);
    std::optional<Bytes> total = answer.content_length;
    if (answer.status == 206) {
      const ContentRange range = parse_content_range(answer.content_range);
      if (range.first != file_.size() || range.total.value_or(~Bytes{0}) < file_.size())
        return corrupt("{}: the server sends other bytes than asked for (Content-Range '{}')",
                       shown_url(remote_.url), printable(answer.content_range, 80));
      total = range.total ? range.total : total_;
      const bool other = answer.etag.starts_with('"') &&
                         file_.origin().validator.starts_with('"') &&
                         answer.etag != file_.origin().validator;
      if (other || (total_ && total != total_)) return begin_anew();
    } else if (file_.size() > 0) {
      hooks_.note(fmt::format("{}: the server starts anew", printable(name_)));
    }
    if (total && remote_.bytes && *total != *remote_.bytes)
      return corrupt("{}: the server has {} bytes where {} are expected", shown_url(remote_.url),
                     *total, *remote_.bytes);
    if (answer.status == 200) STRATA_TRY(file_.restart({remote_.source, validator_of(answer), {}}));
    total_ = total ? total : remote_.bytes;
    return check_space();
  }

  Status begin_anew() {
    STRATA_TRY(file_.restart({}));
    total_ = remote_.bytes;
    return io_error("{}: the file has changed on the server", shown_url(remote_.url));
  }

  // Of an unknown length only some bytes are known to come.
  Status check_space() const {
    const Bytes missing =
        total_ ? *total_ - std::min(*total_, file_.size()) : static_cast<Bytes>(1);
    const Bytes free = file_.free_bytes();
    if (missing == 0 || free >= kSpareDiskBytes + missing) return {};
    return resource_exhausted(
        "{}: the disk has {} left, too little for the {} to come; make room, or put the cache "
        "elsewhere with STRATA_CACHE",
        printable(file_.path()), human_bytes(free),
        total_ ? human_bytes(missing) : std::string("bytes"));
  }

  Status past_the_end(const HttpAnswer& answer) {
    const ContentRange range = parse_content_range(answer.content_range);
    if (range.total != file_.size() || file_.size() == 0) return begin_anew();
    total_ = range.total;
    return {};
  }

  Http& http_;
  const RemoteFile& remote_;
  PartialFile& file_;
  const PullHooks& hooks_;
  std::string sha256_;
  std::string name_;
  std::optional<Bytes> total_;
  bool answered_ = false;  // by content, in this attempt
  bool begun_ = false;     // in any
};

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The beginning of the server's answer; the bytes are not waited for.
Result<HttpAnswer> ask(Http& http, const RemoteFile& remote) {
  std::optional<HttpAnswer> start;
  auto answer = http.get({remote.url, remote.headers, 0},
                         [&](const HttpAnswer& first, std::span<const std::uint8_t>) {
                           start = first;
                           return make_error(StatusCode::kCancelled, "its beginning is enough");
                         });
  if (start) answer = *std::move(start);
  if (answer.ok() && answer->status != 200) return answer_error(*answer, remote.url);
  return answer;
}

// Whether the target that is there is taken for the remote file; false: it is to be replaced.
Result<bool> keeps(Http& http, RemoteFile remote, const std::string& target, IfThere if_there,
                   const PullHooks& hooks) {
  STRATA_ASSIGN(const File file, File::open(target));
  const Origin origin = read_origin(target);
  bool changed = false;
  std::string doubt = "its source gives no SHA-256 to check";
  if (remote.sha256.empty()) {
    const auto answer = ask(http, remote);
    if (answer.ok()) {
      const std::string validator = validator_of(*answer);
      changed = !validator.empty() && !origin.validator.empty() && validator != origin.validator;
      remote.sha256 = linked_sha256(*answer);
      if (answer->content_length) remote.bytes = answer->content_length;
    } else {
      doubt = "its source cannot be asked: " + answer.status().message();
    }
  }
  const bool checked = !remote.sha256.empty();
  const bool sized = !remote.bytes || *remote.bytes == file.size();
  bool same = sized && !changed && origin.source == remote.source && if_there == IfThere::kKeep;
  bool damaged = false;
  if (sized && (checked || (same && !origin.sha256.empty()))) {
    STRATA_ASSIGN(const std::string found, file_sha256(target));
    damaged = !checked && found != origin.sha256;
    same = checked ? found == remote.sha256 : !damaged;
  }
  if (same)
    hooks.note(fmt::format("{} is there already{}", printable(target),
                           checked ? "" : fmt::format(" ({})", doubt)));
  if (same || if_there == IfThere::kReplace) return same;
  const bool other = checked || !sized || damaged || (changed && origin.source == remote.source);
  return is_another(target, origin, remote.source, other);
}

}  // namespace

Status is_another(const std::string& target, const Origin& origin, const std::string& source,
                  bool surely) {
  const std::string from = origin.source.empty() ? "an unknown source" : origin.source;
  return invalid_argument(
      "{}: is there already, from {}, and {} another file than {} has{}; remove it with strata rm, "
      "or replace it with --force",
      printable(target), printable(from), surely ? "is" : "may be", printable(source),
      surely ? ", or damaged" : "");
}

ContentRange parse_content_range(std::string_view text) {
  ContentRange range;
  if (!lower_case(text).starts_with("bytes ")) return range;
  text.remove_prefix(6);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return range;
  range.first = whole_number(text.substr(0, std::min(text.find('-'), slash)));
  range.total = whole_number(text.substr(slash + 1));
  return range;
}

Status download(Http& http, const RemoteFile& remote, const std::string& target, IfThere if_there,
                const std::function<Status(const std::string& path)>& check,
                const PullHooks& hooks) {
  const bool replaces = is_there(target);
  if (replaces) {
    STRATA_ASSIGN(const bool kept, keeps(http, remote, target, if_there, hooks));
    if (kept) return {};
  }
  STRATA_ASSIGN(PartialFile file, PartialFile::open(target, remote.source, hooks.note));
  if (!replaces && is_there(target)) {  // another process was faster
    const bool from_there = read_origin(target).source == remote.source;
    const auto kept = keeps(http, remote, target, from_there ? IfThere::kKeep : if_there, hooks);
    if (kept.ok() ? *kept : file.size() == 0) file.discard();  // bytes are of an earlier try
    if (!kept.ok() || *kept) return kept.status();
  }
  Download transfer(http, remote, target, file, hooks);
  if (Status status = transfer.run(); !status.ok()) {
    const bool worthless = file.size() == 0 || status.code() == StatusCode::kCorrupt;
    if (worthless) file.discard();
    return status;
  }
  const std::string found = file.sha256();
  if (!transfer.sha256().empty() && found != transfer.sha256()) {
    file.discard();
    return corrupt("{}: has SHA-256 {} where {} is expected; it was thrown away",
                   shown_url(remote.url), found, transfer.sha256());
  }
  if (Status status = check(file.path()); !status.ok()) {
    file.discard();
    return status.with_context(fmt::format("{} sent no usable file", shown_url(remote.url)));
  }
  if (transfer.sha256().empty())
    hooks.note(fmt::format("{}: its source gives no SHA-256 to check; it is {}",
                           printable(fs::path(target).filename().string()), found));
  return file.commit(found);
}

}  // namespace strata
