# cells: pg15 pg18
# docs/export.md: its examples run and give what it shows; its tables of options and messages are those of the code.

use strict;
use warnings;

use CdcBridge::Env qw(slurp tree);
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new->allow_output_plugin;
my $text = slurp(tree() . '/docs/export.md');

# What is another one in each run becomes one word.
sub without_chance
{
	my ($value) = @_;
	return [ map { without_chance($_) } @$value ] if ref $value eq 'ARRAY';
	return $value unless ref $value eq 'HASH';
	my %chance = map { $_ => 1 } qw(lsn commit_lsn xid time ts_ms sequence txId);
	return { map { my $v = $value->{$_}; ($_ => $chance{$_} ? defined $v : $_ eq 'id' && $v =~ /:/ ? 'id' : without_chance($v)) } keys %$value };
}

sub documents { my ($json) = @_; return JSON::PP->new->incr_parse($json); }

# ---- examples
my ($examples) = $text =~ /<!-- test\/t\/406_export_docs\.pl runs.*?-->\n(.*)/s or die 'docs/export.md has no examples';
my ($output, $compared) = ('', 0);
while ($examples =~ /^```(sql|json)\n(.*?)^```$/msg)
{
	my ($kind, $block) = ($1, $2);
	if ($kind eq 'sql')
	{
		$output = $postgres->psql($block);
		$output =~ s/\A.*?^\{/{/ms;    # what other statements of the block gave
		next;
	}
	my $open_end = $block =~ s/^\.\.\.\n\z//m;
	my @want = documents($block);
	my @got = documents($output);
	splice(@got, @want) if $open_end;
	is_deeply(without_chance(\@got), without_chance(\@want), 'the JSON of example ' . ++$compared);
}
is($compared, 2, 'there are examples');

# ---- options
$postgres->psql('create extension cdc_bridge');
my %want = map { my ($name, $default, $allowed) = split(/\|/, $_, -1); ($name => "$default|$allowed") }
  split(/\n/, $postgres->psql(q{select name, coalesce("default", ''), coalesce(allowed, '') from cdc_list_options() where kind = 'output plugin'}));
my ($options) = $text =~ /^## Options\n(.*?)^## /ms;
my %told = map { my @cells = map { s/^\s+|\s+$//gr } split(/\|/, $_); $cells[1] =~ /^`(\w+)`$/ ? ($1 => "$cells[2]|$cells[3]") : () } grep { /^\| `/ } split(/\n/, $options);
is_deeply(\%told, \%want, 'every option, with its default and what is allowed');

# ---- members of plain JSON that the code writes
my ($members) = $text =~ /^## Plain JSON\n(.*?)^## /ms;
my %documented = map { $_ => 1 } $members =~ /`(\w+)`/g;
my %written = map { $_ => 1 } slurp(tree() . '/src/format/format_plain.c') =~ /\\"(\w+)\\":/g;
is_deeply([ grep { !$documented{$_} } sort keys %written ], [], 'every member of plain JSON is told');

# ---- messages
my $sources = join('', map { slurp($_) } glob(tree() . '/src/decode/*.c'), glob(tree() . '/src/util/util_options.c'));
my ($messages) = $text =~ /^\| message \| SQLSTATE \| \|\n(.*?)\n\n/ms;
for my $line (split(/\n/, $messages))
{
	my ($message) = $line =~ /^\| ([^|]+) \| \w{5} \|/ or next;
	my ($longest) = sort { length($b) <=> length($a) } split(/\x{e2}\x{80}\x{a6}|"|WARNING: /, $message);
	$longest =~ s/^\s+|\s+$//g;
	$longest =~ s/cdc_bridge output plugin$//;
	ok(index($sources, $longest =~ s/^\s+|\s+$//gr) >= 0, "message \"$message\" is in the code");
}

done_testing();
