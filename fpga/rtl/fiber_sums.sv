// Reads a sparse tensor fiber by fiber and computes one row of sums per fiber: of its nonzeros,
// each value times the row of the matrix that its index selects. This is TTM without the writer,
// and the first half of MTTKRP.
//
// MATRIX_ROWS 0: rows of the matrix are read off chip, one per nonzero. Otherwise the whole matrix
// is first loaded into on-chip memory of this number of rows.
//
// Sources of memory requests, in the order of their priority and of their bits: INDEX, VALUE,
// FIBER_PTR, MATRIX.
module fiber_sums #(
    parameter int COLUMNS = 16,
    parameter int LANES = 16,
    parameter int BEAT = 32,
    parameter int MULTIPLY_LATENCY = 3,
    parameter int ADD_LATENCY = 1,
    parameter int MATRIX_ROWS = 0,
    parameter int QUEUE_WORDS = 512,
    parameter int QUEUE_BEATS = 512,
    parameter int QUEUE_ROWS = 32
) (
    input  logic                  clock,
    input  logic                  reset,
    // first beats of the arrays, and their sizes; constant from reset on
    input  logic [          31:0] fiber_ptr,
    input  logic [          31:0] index,
    input  logic [          31:0] value,
    input  logic [          31:0] matrix,
    input  logic [          31:0] fibers,
    input  logic [          31:0] nonzeros,
    input  logic [          31:0] matrix_rows,
    output logic                  loaded,       // the matrix is on chip, if it has to be
    // memory
    output logic [           3:0] requests,
    output logic [         127:0] addresses,
    input  logic [           3:0] grants,
    input  logic [           3:0] answers,
    input  logic [   BEAT*32-1:0] answer_data,
    // sums, one row per fiber
    output logic                  valid,
    input  logic                  pop,
    output logic [COLUMNS*32-1:0] sums
);
  localparam int INDEX = 0;
  localparam int VALUE = 1;
  localparam int FIBER_PTR = 2;
  localparam int MATRIX = 3;

  wire hold = reset || !loaded;  // reset of the readers

  logic end_valid, end_pop, index_valid, index_pop, value_valid, row_valid, operand_pop;
  logic [31:0] end_word, index_word, value_word;
  logic [COLUMNS*32-1:0] row;
  word_reader #(
      .BEAT (BEAT),
      .DEPTH(QUEUE_WORDS)
  ) ends (
      .clock,
      .reset(hold),
      .base(fiber_ptr),
      .count(fibers + 1'b1),
      .request(requests[FIBER_PTR]),
      .address(addresses[32*FIBER_PTR+:32]),
      .grant(grants[FIBER_PTR]),
      .answer(answers[FIBER_PTR]),
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
      .reset(hold),
      .base(index),
      .count(nonzeros),
      .request(requests[INDEX]),
      .address(addresses[32*INDEX+:32]),
      .grant(grants[INDEX]),
      .answer(answers[INDEX]),
      .answer_data,
      .valid(index_valid),
      .pop(index_pop),
      .word(index_word)
  );
  word_reader #(
      .BEAT (BEAT),
      .DEPTH(QUEUE_WORDS)
  ) values (
      .clock,
      .reset(hold),
      .base(value),
      .count(nonzeros),
      .request(requests[VALUE]),
      .address(addresses[32*VALUE+:32]),
      .grant(grants[VALUE]),
      .answer(answers[VALUE]),
      .answer_data,
      .valid(value_valid),
      .pop(operand_pop),
      .word(value_word)
  );
  if (MATRIX_ROWS == 0) begin : g_off_chip
    wire unused = &{1'b0, matrix_rows};
    assign loaded = 1'b1;
    row_reader #(
        .COLUMNS(COLUMNS),
        .BEAT(BEAT),
        .DEPTH(QUEUE_BEATS)
    ) rows (
        .clock,
        .reset,
        .base(matrix),
        .index_valid,
        .index_pop,
        .index(index_word),
        .request(requests[MATRIX]),
        .address(addresses[32*MATRIX+:32]),
        .grant(grants[MATRIX]),
        .answer(answers[MATRIX]),
        .answer_data,
        .valid(row_valid),
        .pop(operand_pop),
        .row
    );
  end else begin : g_on_chip
    row_memory #(
        .COLUMNS(COLUMNS),
        .BEAT(BEAT),
        .ROWS(MATRIX_ROWS)
    ) rows (
        .clock,
        .reset,
        .base(matrix),
        .count(matrix_rows),
        .loaded,
        .index_valid,
        .index_pop,
        .index(index_word),
        .request(requests[MATRIX]),
        .address(addresses[32*MATRIX+:32]),
        .grant(grants[MATRIX]),
        .answer(answers[MATRIX]),
        .answer_data,
        .valid(row_valid),
        .pop(operand_pop),
        .row
    );
  end

  logic space, reserve, push;
  logic [COLUMNS*32-1:0] lane_sums;
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
      .a_valid(value_valid),
      .b_valid(row_valid),
      .pop(operand_pop),
      .a({COLUMNS{value_word}}),
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
      .valid,
      .pop,
      .out(sums)
  );
endmodule
