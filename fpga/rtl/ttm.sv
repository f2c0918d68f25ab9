// Processing element of TTM: a tensor in fibers times a matrix, one row of the output per fiber.
// Figure 1a of [XPLAT] section 4. MATRIX_ROWS as in fiber_sums.
//
// The tensor, the matrix and the output are arrays in one memory, each from a whole beat on: BEAT
// words of 32 bits. The memory accepts one beat per cycle, to read or to write, and answers reads
// of one source in order, with the source of the request. Sources by priority: index, value,
// fiber_ptr, result, matrix: the short streams first, so that no long one waits for them.
module ttm #(
    parameter int COLUMNS = 16,
    parameter int LANES = COLUMNS,
    parameter int BEAT = 32,
    parameter int MULTIPLY_LATENCY = 3,
    parameter int ADD_LATENCY = 1,
    parameter int MATRIX_ROWS = 0,
    parameter int QUEUE_WORDS = 512,
    parameter int QUEUE_BEATS = 512,
    parameter int QUEUE_ROWS = 32
) (
    input  logic               clock,
    input  logic               reset,
    output logic               done,
    // first beats of the arrays, and their sizes; constant from reset on
    input  logic [       31:0] fiber_ptr,
    input  logic [       31:0] index,
    input  logic [       31:0] value,
    input  logic [       31:0] matrix,
    input  logic [       31:0] result,
    input  logic [       31:0] fibers,
    input  logic [       31:0] nonzeros,
    input  logic [       31:0] matrix_rows,
    // memory
    input  logic               ready,
    output logic               request,
    output logic               write,          // the request; otherwise it is a read
    output logic [        2:0] source,
    output logic [       31:0] address,
    output logic [BEAT*32-1:0] write_data,
    input  logic               answer,
    input  logic [        2:0] answer_source,
    input  logic [BEAT*32-1:0] answer_data
);
  localparam int RESULT = 3;
  localparam int SOURCES = 5;

  logic [SOURCES-1:0] requests, grants, answers;
  logic [SOURCES*32-1:0] addresses;
  memory_port #(
      .SOURCES(SOURCES)
  ) port (
      .requests,
      .addresses,
      .grants,
      .ready,
      .valid(request),
      .source,
      .address
  );
  assign answers = SOURCES'(answer) << answer_source;
  assign write   = source == $bits(source)'(RESULT);

  logic valid, pop, loaded, written;
  logic [COLUMNS*32-1:0] sums;
  wire unused = &{1'b0, answers[RESULT]};
  assign done = loaded && written;
  fiber_sums #(
      .COLUMNS(COLUMNS),
      .LANES(LANES),
      .BEAT(BEAT),
      .MULTIPLY_LATENCY(MULTIPLY_LATENCY),
      .ADD_LATENCY(ADD_LATENCY),
      .MATRIX_ROWS(MATRIX_ROWS),
      .QUEUE_WORDS(QUEUE_WORDS),
      .QUEUE_BEATS(QUEUE_BEATS),
      .QUEUE_ROWS(QUEUE_ROWS)
  ) fiber (
      .clock,
      .reset,
      .fiber_ptr,
      .index,
      .value,
      .matrix,
      .fibers,
      .nonzeros,
      .matrix_rows,
      .loaded,
      .requests({requests[4], requests[2:0]}),
      .addresses({addresses[159:128], addresses[95:0]}),
      .grants({grants[4], grants[2:0]}),
      .answers({answers[4], answers[2:0]}),
      .answer_data,
      .valid,
      .pop,
      .sums
  );
  row_writer #(
      .COLUMNS(COLUMNS),
      .BEAT(BEAT)
  ) writer (
      .clock,
      .reset,
      .base(result),
      .count(fibers),
      .done(written),
      .valid,
      .pop,
      .row(sums),
      .request(requests[RESULT]),
      .address(addresses[32*RESULT+:32]),
      .data(write_data),
      .grant(grants[RESULT])
  );
endmodule
