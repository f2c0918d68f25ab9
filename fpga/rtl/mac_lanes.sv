// Multiplies and accumulates rows: LANES lanes, each one multiplier and one adder, add the products
// of the columns of `a` and `b` to sums. The stream `ends` divides the operands into groups
// (fibers, or the fibers of a slice): after a first word, which is dropped, each word is the number
// of operands at the end of the next group. Each group gives one row of sums, an empty one a row of
// +0.
//
// A row takes PASSES = COLUMNS / LANES cycles, rounded up. A sum is needed by the next operand of
// its group ADD_LATENCY cycles later, so operands of one group follow each other after max(PASSES,
// ADD_LATENCY) cycles; changing groups costs no cycle. Sums are sequential, in the order of the
// operands, and start from +0: sum = sum + (a * b), each operation rounded.
//
// A row of sums leaves MULTIPLY_LATENCY + ADD_LATENCY cycles after its last pass began; the
// pipeline never stalls. Space for it is reserved beforehand (fifo.sv). A reset has to last longer
// than the two latencies, because the pipeline has none of its own.
module mac_lanes #(
    parameter int COLUMNS = 16,
    parameter int LANES = 16,
    parameter int MULTIPLY_LATENCY = 3,
    parameter int ADD_LATENCY = 1  // at least 1
) (
    input  logic                  clock,
    input  logic                  reset,
    // ends of groups
    input  logic                  end_valid,
    output logic                  end_pop,
    input  logic [          31:0] end_word,
    // operands
    input  logic                  a_valid,
    input  logic                  b_valid,
    output logic                  pop,        // of both operands
    input  logic [COLUMNS*32-1:0] a,
    input  logic [COLUMNS*32-1:0] b,
    // sums
    input  logic                  space,
    output logic                  reserve,
    output logic                  push,
    output logic [COLUMNS*32-1:0] sums
);
  localparam int PASSES = (COLUMNS + LANES - 1) / LANES;
  localparam int PASS = PASSES > 1 ? $clog2(PASSES) : 1;
  localparam int GAP = $clog2(ADD_LATENCY + 1);
  localparam int WIDTH = LANES * 32;

  // ---- issue: one pass per cycle
  logic started;  // the first end was dropped
  logic first;  // no operand of the group was issued
  logic [31:0] count;  // operands issued
  logic [PASS-1:0] pass;
  logic [GAP-1:0] gap;  // cycles until the sums of the operand before can be used

  wire is_empty = count == end_word;
  wire ends = is_empty || count + 1'b1 == end_word;
  wire operands = a_valid && b_valid && (first || gap == '0);
  wire ready = started && end_valid && (is_empty || operands) && (!ends || space);
  wire issue = pass != '0 || ready;
  wire issue_last = issue && pass == PASS'(PASSES - 1);
  assign pop = issue_last && !is_empty;
  assign reserve = issue_last && ends;
  assign end_pop = reserve || (!started && end_valid);

  always_ff @(posedge clock) begin
    if (reset) begin
      started <= 1'b0;
      first <= 1'b1;
      count <= '0;
      pass <= '0;
      gap <= '0;
    end else begin
      if (end_valid) started <= 1'b1;
      if (issue) pass <= issue_last ? '0 : pass + 1'b1;
      if (issue_last) first <= ends;
      if (pop) count <= count + 1'b1;
      if (issue && pass == '0) gap <= GAP'(ADD_LATENCY - 1);
      else if (gap != '0) gap <= gap - 1'b1;
    end
  end

  // ---- the columns of this pass; an empty group multiplies zeros
  localparam int PADDED = PASSES * WIDTH;
  wire [PADDED-1:0] a_padded = PADDED'(a);
  wire [PADDED-1:0] b_padded = PADDED'(b);
  logic [WIDTH-1:0] a_pass, b_pass;
  always_comb begin
    a_pass = '0;
    b_pass = '0;
    for (int i = 0; i < PASSES; i++) begin
      if (pass == PASS'(i) && !is_empty) begin
        a_pass = a_padded[WIDTH*i+:WIDTH];
        b_pass = b_padded[WIDTH*i+:WIDTH];
      end
    end
  end

  // ---- the pass at the inputs of the adders, and at their outputs
  logic [PASSES-1:0] issued, adding, added;  // one bit per pass
  logic adding_first, adding_emit, added_emit;
  always_comb for (int i = 0; i < PASSES; i++) issued[i] = issue && pass == PASS'(i);
  delay #(
      .WIDTH(PASSES + 2),
      .DEPTH(MULTIPLY_LATENCY)
  ) to_adders (
      .clock,
      .in ({issued, first, reserve}),
      .out({adding, adding_first, adding_emit})
  );
  delay #(
      .WIDTH(PASSES + 1),
      .DEPTH(ADD_LATENCY)
  ) to_sums (
      .clock,
      .in ({adding, adding_emit}),
      .out({added, added_emit})
  );

  // ---- lanes
  logic [PADDED-1:0] kept;  // sums of the last operand, pass by pass
  logic [ WIDTH-1:0] addends;  // sums that the adders continue
  logic [ WIDTH-1:0] totals;  // sums that leave the adders
  always_comb begin
    addends = '0;
    for (int i = 0; i < PASSES; i++) begin
      if (adding[i] && !adding_first) addends = added[i] ? totals : kept[WIDTH*i+:WIDTH];
    end
  end
  for (genvar i = 0; i < LANES; i++) begin : g_lane
    logic [31:0] product;
    f32_multiply #(
        .LATENCY(MULTIPLY_LATENCY)
    ) multiply (
        .clock,
        .a(a_pass[32*i+:32]),
        .b(b_pass[32*i+:32]),
        .product
    );
    f32_add #(
        .LATENCY(ADD_LATENCY)
    ) add (
        .clock,
        .a  (addends[32*i+:32]),
        .b  (product),
        .sum(totals[32*i+:32])
    );
  end

  always_ff @(posedge clock) begin
    for (int i = 0; i < PASSES; i++) if (added[i]) kept[WIDTH*i+:WIDTH] <= totals;
  end

  // The sums of the last pass are still at the adders.
  logic [PADDED-1:0] row;
  always_comb begin
    row = kept;
    row[PADDED-1-:WIDTH] = totals;
  end
  wire unused = &{1'b0, row};
  assign push = added_emit;
  assign sums = row[COLUMNS*32-1:0];
endmodule
