// One request's way back: an answer, or a stream of chunks. No method waits for the client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/message.h"

namespace strata::http {

class Channel;
struct EventBlock;

struct StreamStart {
  std::string content_type = "text/event-stream";
  Fields headers = {};
  // Sent while the stream is silent for ServerOptions::keep_alive_interval; empty: nothing is.
  std::string keep_alive_chunk = {};
  int status = 200;
  // Put around the body of a response that comes once the stream is open, and ends it; where both
  // are empty, the connection breaks instead.
  std::string error_prefix = {}, error_suffix = {};
};

// What the server says of itself as long as a handler's answer is not complete.
struct Standby {
  // Opens when nothing was said for ServerOptions::keep_alive_interval, if it has a
  // keep_alive_chunk.
  std::optional<StreamStart> stream = {};
  HttpResponse stopped = {};  // where the server stops before the answer is complete
};

// Thread-safe. What one thread calls takes effect in that order. Calls that come too late (the
// client is gone, the answer complete, the server stopped) do nothing. An Exchange that is
// destroyed unanswered answers 500; one whose stream is unfinished breaks the connection, so that
// the client sees the loss.
class Exchange {
 public:
  explicit Exchange(std::shared_ptr<Channel> channel);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // For a request that may wait long. REQUIRES: before everything else.
  void stand_by(Standby standby);

  // Calls `task` on one of the threads for handlers, to go on with what waited. Destroys it
  // uncalled where the client goes before.
  void resume(std::function<void()> task);

  // The whole answer, or the error that ends an open stream. REQUIRES: neither respond() nor
  // finish() came before.
  void respond(HttpResponse response);

  // Opens a stream: write() any number of times, then finish(). REQUIRES: neither it nor respond()
  // came before. Does nothing where the stream of stand_by() has opened.
  void start_stream(StreamStart start);
  void write(std::string chunk);
  void finish();

  // `callback` is called once if the client goes before its answer is complete: on the server's
  // thread, which it must not block, or by this call if that has happened. One at a time: a later
  // call replaces it. It is destroyed when the answer is complete.
  void on_disconnect(std::function<void()> callback);

  // Whether there is nobody to answer: the client is gone or the answer is complete.
  bool closed() const;
  // Whether the client was gone before that.
  bool lost() const;

 private:
  friend class EventBatch;
  std::shared_ptr<Channel> channel_;
};

// Chunks for many streams, handed to the server's thread at once: an engine's step costs it one
// message, whatever the number of streams. Chunks of a stream go through one batch or through the
// Exchange, not through both. One thread uses a batch.
class EventBatch {
 public:
  EventBatch();
  ~EventBatch();  // what is not flushed is lost
  EventBatch(const EventBatch&) = delete;
  EventBatch& operator=(const EventBatch&) = delete;

  // REQUIRES: a stream of the same server as all others of the batch.
  void append(const Exchange& exchange, std::string_view chunk);
  void finish(const Exchange& exchange);

  // Sends what was collected; does nothing if that is nothing.
  void flush();

 private:
  void add(const Exchange& exchange, std::string_view chunk, bool last);

  std::unique_ptr<EventBlock> block_;
};

}  // namespace strata::http
