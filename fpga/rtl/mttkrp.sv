// Processing element of MTTKRP: for each slice, the sum over its fibers of the row of sums of the
// fiber (fiber_sums, with matrix2) times the row of matrix1 that the fiber's index selects, column
// by column. Figure 1b of [XPLAT] section 4. The memory is that of ttm.
module mttkrp #(
    parameter int COLUMNS = 16,
    parameter int LANES = COLUMNS,
    parameter int BEAT = 32,
    parameter int MULTIPLY_LATENCY = 3,
    parameter int ADD_LATENCY = 1,
    parameter int QUEUE_WORDS = 512,
    parameter int QUEUE_BEATS = 512,
    parameter int QUEUE_ROWS = 32
) (
    input  logic               clock,
    input  logic               reset,
    output logic               done,
    // first beats of the arrays, and their sizes; constant from reset on
    input  logic [       31:0] slice_ptr,
    input  logic [       31:0] fiber_ptr,
    input  logic [       31:0] fiber_index,
    input  logic [       31:0] index,
    input  logic [       31:0] value,
    input  logic [       31:0] matrix1,
    input  logic [       31:0] matrix2,
    input  logic [       31:0] result,
    input  logic [       31:0] slices,
    input  logic [       31:0] fibers,
    input  logic [       31:0] nonzeros,
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
  // sources in the order of their priority; 0 to 2: index, value and fiber_ptr (fiber_sums)
  localparam int FIBER_INDEX = 3;
  localparam int SLICE_PTR = 4;
  localparam int RESULT = 5;
  localparam int MATRIX1 = 6;
  localparam int MATRIX2 = 7;
  localparam int SOURCES = 8;

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
  wire unused = &{1'b0, answers[RESULT], loaded};

  // ---- first half: a row of sums per fiber
  logic [3:0] fiber_requests, fiber_grants, fiber_answers;
  logic [127:0] fiber_addresses;
  logic loaded, sums_valid, operand_pop;
  logic [COLUMNS*32-1:0] sums;
  assign {requests[MATRIX2], requests[2:0]} = fiber_requests;
  assign {addresses[32*MATRIX2+:32], addresses[95:0]} = fiber_addresses;
  assign fiber_grants  = {grants[MATRIX2], grants[2:0]};
  assign fiber_answers = {answers[MATRIX2], answers[2:0]};
  fiber_sums #(
      .COLUMNS(COLUMNS),
      .LANES(LANES),
      .BEAT(BEAT),
      .MULTIPLY_LATENCY(MULTIPLY_LATENCY),
      .ADD_LATENCY(ADD_LATENCY),
      .QUEUE_WORDS(QUEUE_WORDS),
      .QUEUE_BEATS(QUEUE_BEATS),
      .QUEUE_ROWS(QUEUE_ROWS)
  ) fiber (
      .clock,
      .reset,
      .fiber_ptr,
      .index,
      .value,
      .matrix(matrix2),
      .fibers,
      .nonzeros,
      .matrix_rows('0),
      .loaded,
      .requests(fiber_requests),
      .addresses(fiber_addresses),
      .grants(fiber_grants),
      .answers(fiber_answers),
      .answer_data,
      .valid(sums_valid),
      .pop(operand_pop),
      .sums
  );

  // ---- second half: the fibers of a slice
  logic end_valid, end_pop, index_valid, index_pop, row_valid;
  logic [31:0] end_word, index_word;
  logic [COLUMNS*32-1:0] row;
  word_reader #(
      .BEAT (BEAT),
      .DEPTH(QUEUE_WORDS)
  ) ends (
      .clock,
      .reset,
      .base(slice_ptr),
      .count(slices + 1'b1),
      .request(requests[SLICE_PTR]),
      .address(addresses[32*SLICE_PTR+:32]),
      .grant(grants[SLICE_PTR]),
      .answer(answers[SLICE_PTR]),
      .answer_data,
      .valid(end_valid),
      .pop(end_pop),
      .word(end_word)
  );
  word_reader #(
      .BEAT (BEAT),
      .DEPTH(QUEUE_WORDS)
  ) indices (
      .clock,
      .reset,
      .base(fiber_index),
      .count(fibers),
      .request(requests[FIBER_INDEX]),
      .address(addresses[32*FIBER_INDEX+:32]),
      .grant(grants[FIBER_INDEX]),
      .answer(answers[FIBER_INDEX]),
      .answer_data,
      .valid(index_valid),
      .pop(index_pop),
      .word(index_word)
  );
  row_reader #(
      .COLUMNS(COLUMNS),
      .BEAT(BEAT),
      .DEPTH(QUEUE_BEATS)
  ) rows (
      .clock,
      .reset,
      .base(matrix1),
      .index_valid,
      .index_pop,
      .index(index_word),
      .request(requests[MATRIX1]),
      .address(addresses[32*MATRIX1+:32]),
      .grant(grants[MATRIX1]),
      .answer(answers[MATRIX1]),
      .answer_data,
      .valid(row_valid),
      .pop(operand_pop),
      .row
  );

  logic space, reserve, push, result_valid, result_pop;
  logic [COLUMNS*32-1:0] lane_sums, result_row;
  mac_lanes #(
      .COLUMNS(COLUMNS),
      .LANES(LANES),
      .MULTIPLY_LATENCY(MULTIPLY_LATENCY),
      .ADD_LATENCY(ADD_LATENCY)
  ) lanes (
      .clock,
      .reset,
      .end_valid,
      .end_pop,
      .end_word,
      .a_valid(sums_valid),
      .b_valid(row_valid),
      .pop(operand_pop),
      .a(sums),
      .b(row),
      .space,
      .reserve,
      .push,
      .sums(lane_sums)
  );
  fifo #(
      .WIDTH(COLUMNS * 32),
      .DEPTH(QUEUE_ROWS)
  ) results (
      .clock,
      .reset,
      .space,
      .reserve,
      .push,
      .in(lane_sums),
      .valid(result_valid),
      .pop(result_pop),
      .out(result_row)
  );
  row_writer #(
      .COLUMNS(COLUMNS),
      .BEAT(BEAT)
  ) writer (
      .clock,
      .reset,
      .base(result),
      .count(slices),
      .done,
      .valid(result_valid),
      .pop(result_pop),
      .row(result_row),
      .request(requests[RESULT]),
      .address(addresses[32*RESULT+:32]),
      .data(write_data),
      .grant(grants[RESULT])
  );
endmodule
