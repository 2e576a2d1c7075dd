# cells: pg15 pg18
# docs/export.md: its examples run and give what it shows, its reader of files reads each change once; its tables of options, columns, states
# and messages are those of the code.

use strict;
use warnings;

use CdcBridge::Env qw(new_folder slurp tree);
use CdcBridge::Export;
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
	my %chance = map { $_ => 1 } qw(lsn commit_lsn xid time ts_ms ts_us ts_ns sequence txId);
	return { map { my $v = $value->{$_}; ($_ => $chance{$_} ? defined $v : $_ eq 'id' && $v =~ /:/ ? 'id' : without_chance($v)) } keys %$value };
}

sub documents { my ($json) = @_; return JSON::PP->new->incr_parse($json); }

# A table's first cells as lines of a hash: what stands between backquotes => the cells behind it.
sub cells
{
	my ($part) = @_;
	return map { [ map { s/^\s+|\s+$//gr } split(/(?<!\\)\|/, s/^\||\|$//gr) ] } grep { /^\| `/ } split(/\n/, $part);
}

# ---- a pipeline
my ($way) = $text =~ /<!-- test\/t\/406_export_docs\.pl runs this block.*?-->\n(.*?)^## Set up\n/ms or die 'docs/export.md has no pipeline';
my $dir = new_folder('export');
my $export = CdcBridge::Export->new(postgres => $postgres, dir => $dir, created => 1);
my @blocks = $way =~ /^```sql\n(.*?)^```$/msg;
$postgres->psql(shift(@blocks) =~ s/\/var\/lib\/cdc/$dir/r);
$export->wait_for_all;
is(join(' ', map { $_->{op} } $export->records), 'c c u d', 'the pipeline of the example ships what the example changes');
my @lines = map { slurp($_) } $export->files;
my ($end) = $lines[0] =~ /^(\{"cdc_bridge.*)/m;
my ($example) = $way =~ /^```json\n(.*?)\n```$/ms;
is_deeply([ $end =~ /"(\w+)":/g ], [ $example =~ /"(\w+)":/g ], 'the end record of the example has the members of a true one, in that order');
my %member = map { ($_->[0] =~ /`(\w+)`/)[0] => 1 } cells($way =~ /^\| member \| \|\n(.*?)\n\n/ms);
is_deeply([ grep { !$member{$_} } grep { $_ ne 'cdc_bridge' } $end =~ /"(\w+)":/g ], [], 'every member is told');
unlike($postgres->try_psql($_) // '', qr/ERROR/, 'runs: ' . substr($_, 0, 40)) for @blocks;
like($postgres->psql($blocks[-1]), qr/^cdc_\d+_\d+\|postgres\|t\|.*\|SELECT pg_drop_replication_slot\('cdc_\d+_\d+'\);$/, 'the last one shows our slots, and how to drop them');

# ---- its readers
my ($awk) = $way =~ /^```sh\n(.*?)^```$/ms;
is(scalar(() = qx(cd '$dir/shop_out' && $awk) =~ /\n/g), 4, 'the short reader shows the changes and no end records');
SKIP:
{
	skip('python3 with sqlite3 is not there', 5) if system(q{python3 -c 'import sqlite3' 2>/dev/null}) != 0;
	my ($python) = $way =~ /^```python\n(.*?)^```$/ms;
	my $script = "$dir/read.py";
	open(my $out, '>', $script) or die "$script: $!";
	print $out $python . "print(db.execute('select count(*), max(name) from change').fetchone())\n";
	close($out);
	my $read = sub { return qx(python3 '$script' '$dir/shop_out' '$dir/read.db' 2>&1); };
	is($read->(), "(4, 'shop.item')\n", 'the reader takes every change');
	is($read->(), "(4, 'shop.item')\n", 'and none twice');
	$postgres->psql("insert into shop.item select i, 'more', i from generate_series(10, 19) i");
	$export->wait_for_all;
	open(my $torn, '>>', ($export->files)[-1]) or die $!;
	print $torn substr((split(/\n/, $lines[0]))[1], 0) . "\n";
	close($torn);
	is($read->(), "(14, 'shop.item')\n", 'it goes on where it was, and does not believe what no end record stands behind');
	$export->stop;
	# as after a crash of the machine: all of it once more, in one piece
	my $all = join('', map { slurp($_) } $export->files);
	my ($last) = (my @ends = $all =~ /^(\{"cdc_bridge.*\n)/mg)[-1];
	unlink($export->files);
	open(my $again, '>', "$dir/shop_out/changes-000000000001.jsonl") or die $!;
	print $again join('', grep { !/^\{"cdc_bridge/ } $all =~ /^(.*\n)/mg) . $last =~ s/"end":"(\w+)\/\w+"/"end":"$1\/FFFFFFF0"/r;
	close($again);
	is($read->(), "(14, 'shop.item')\n", 'what comes again in a piece of another cut is left out');
}
$export->drop;

my @view = split(/\n/, $postgres->psql(q{select attname from pg_attribute where attrelid = 'pg_stat_cdc_export'::regclass and attnum > 0 order by attnum}));
my ($columns) = $way =~ /^\| column \| type \| \|\n(.*?)\n\n/ms;
is_deeply([ map { $_->[0] =~ /`(\w+)`/g } cells($columns) ], \@view, 'every column of the view is told, in order');

my %known = map { my ($subject, $name, $default, $allowed) = split(/\|/, $_, -1); ("$subject.$name" => "$default|$allowed") }
  split(/\n/, $postgres->psql(q{select subject, name, coalesce("default", ''), coalesce(allowed, '') from cdc_list_options() o where subject in ('outgoing', 'cdc_file', 'cdc_null')
	and not exists (select from cdc_list_options() p where p.kind = 'output plugin' and (p.name, p."default") is not distinct from (o.name, o."default"))}));
my %described = map { my @c = @$_; my $server = $c[0] =~ /^`(cdc_\w+)`$/ ? $1 : undef;
	$server ? ("$server." . $c[1] =~ s/`//gr => $c[2] eq 'required' ? '|' : "$c[2]|" . $c[3] =~ s{ to }{..}r) : ('outgoing.' . $c[0] =~ s/`//gr => "$c[1]|" . $c[2] =~ s{ to }{..}r) }
  map { cells($_) } $way =~ /^\| (?:option of an outgoing pipeline|server of) .*?\n(.*?)\n\n/msg;
is_deeply(\%described, \%known, 'every option of outgoing pipelines and of sinks, with its default and what is allowed');
is($postgres->psql("select string_agg(name, ' ' order by name) from cdc_list_options() p where kind = 'output plugin'
	and not exists (select from cdc_list_options() o where o.subject = 'outgoing' and (o.name, o.\"default\") is not distinct from (p.name, p.\"default\"))"),
	'schema_changes streaming tables', 'pipelines have the options of the plugin, but for those that the text names');
like($way, qr/takes every other \[option of the plugin\]\(#options\) but `streaming` and `tables`/, 'and it does name them');
$postgres->psql('drop extension cdc_bridge cascade');

# ---- examples of the plugin
my ($examples) = $text =~ /<!-- test\/t\/406_export_docs\.pl runs the statements.*?-->\n(.*)/s or die 'docs/export.md has no examples';
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
my $sources = join('', map { slurp($_) } glob(tree() . '/src/decode/*.c'), map { tree() . "/src/$_" } qw(catalog/catalog_record_options.c util/util_options.c));
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
