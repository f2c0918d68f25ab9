// A bounded first-in, first-out queue between two stages of a processing element. The writer
// reserves space before it knows the word: `space` says that one of the DEPTH places is neither
// occupied nor reserved, and `reserve` reserves it. So a word that `push` brings any number of
// cycles later, after a memory or a pipeline, always has space.
//
// The oldest word is visible at `out` from the cycle after its push on. `pop` removes it. The words
// are in a memory with a registered read, as FPGAs have; a word that is read in the cycle in which
// it is written comes from a register next to the memory.
module fifo #(
    parameter int WIDTH = 32,
    parameter int DEPTH = 4
) (
    input  logic             clock,
    input  logic             reset,
    output logic             space,
    input  logic             reserve,
    input  logic             push,
    input  logic [WIDTH-1:0] in,
    output logic             valid,
    input  logic             pop,
    output logic [WIDTH-1:0] out
);
  localparam int PLACE = DEPTH > 1 ? $clog2(DEPTH) : 1;
  localparam int COUNT = $clog2(DEPTH + 1);

  logic [WIDTH-1:0] words[DEPTH];
  logic [WIDTH-1:0] stored, passed;
  logic from_memory;
  logic [PLACE-1:0] head, next_head, tail;
  logic [COUNT-1:0] occupied, reserved;  // reserved: including the occupied ones

  // the place after another one in the ring
  function automatic logic [PLACE-1:0] following(input logic [PLACE-1:0] place);
    following = place == PLACE'(DEPTH - 1) ? '0 : place + 1'b1;
  endfunction

  assign space = reserved != COUNT'(DEPTH);
  assign valid = occupied != '0;
  assign next_head = pop ? following(head) : head;
  assign out = from_memory ? stored : passed;

  always_ff @(posedge clock) begin
    if (push) words[tail] <= in;
    stored <= words[next_head];
    passed <= in;
    from_memory <= !push || tail != next_head;
    if (reset) begin
      head <= '0;
      tail <= '0;
      occupied <= '0;
      reserved <= '0;
    end else begin
      if (push) tail <= following(tail);
      head <= next_head;
      occupied <= occupied + COUNT'(push) - COUNT'(pop);
      reserved <= reserved + COUNT'(reserve) - COUNT'(pop);
    end
  end
endmodule
