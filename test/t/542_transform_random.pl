# Filters and projections under a copy, a stream and kill -9: rows that come in and leave the filter, keys that change, images in part, rows without a key. What is
# here in the end is what the source's own SQL says of its rows. In batches and change by change; a new copy beside the rows at the end.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(random_seed);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $seed = random_seed();
my $source = CdcBridge::Source->new(args => ['--innodb-lock-wait-timeout=2']);
$source->{seed} = $seed;
my $postgres = CdcBridge::Postgres->new;
my $rows = 3000;

$source->sql('create database shop', sprintf("grant lock tables on shop.* to '%s'\@'%%'", $source->user),
	'create table shop.t (id int, part int, v int not null, u varchar(40), big text, primary key (id, part))',
	'create table shop.k (a int, b int)', 'create table shop.p (id int primary key, a int not null, b varchar(20), c varchar(20))');
sub text { return join('', map { ('a' .. 'f')[ rand 6 ] } 1 .. int(rand(8))); }
for (my $i = 0; $i < $rows; $i += 500)
{
	$source->sql('insert into shop.t values ' . join(', ', map { sprintf("(%d, %d, %d, '%s', repeat('x', %d))", $_, $_ % 3, rand(100), text(), rand(50)) } $i .. $i + 499),
		'insert into shop.p values ' . join(', ', map { sprintf("(%d, %d, '%s', '%s')", $_, rand(100), text(), text()) } $i .. $i + 499),
		'insert into shop.k values ' . join(', ', map { sprintf('(%d, %d)', rand(20), rand(10)) } 1 .. 200));
}

# Rows that pass through may be told in part, also while they are copied.
sub change_parts
{
	my ($dbh, $number) = @_;
	my $id = int(rand($rows / 3)) * 3 + $number - 1;
	my $what = int(rand(6));
	if ($what == 0) { $dbh->do("update shop.p set a = a + 1 where id = $id"); }
	elsif ($what == 1) { $dbh->do("update shop.p set b = '" . text() . "' where id = $id"); }
	elsif ($what == 2) { $dbh->do("update shop.p set id = id + 3 * $rows, c = null where id = $id"); }
	elsif ($what == 3) { $dbh->do("delete from shop.p where id = $id"); }
	elsif ($what == 4) { $dbh->do("insert ignore into shop.p (id, a) values ($id, 1)"); }
	else { $dbh->do("update shop.p set c = '" . text() . "', a = $what where id = $id"); }
	return;
}

# Of 20 hot rows each writer has its own: sessions that wait for each other bring nothing.
sub change
{
	my ($dbh, $number) = @_;
	$dbh->do('set session binlog_row_image = ' . (rand() < 0.5 ? 'minimal' : 'full'));
	change_parts($dbh, $number) for 1 .. 2;
	$dbh->do('set session binlog_row_image = full');
	$dbh->begin_work;
	for (1 .. 1 + int(rand(4)))
	{
		my $id = rand() < 0.5 ? int(rand(20)) * 3 + $number - 1 : int(rand($rows / 3)) * 3 + $number - 1;
		my $what = int(rand(9));
		my $v = int(rand(100));
		my $t = text();
		if ($what < 3) { $dbh->do("update shop.t set v = $v where id = $id"); }
		elsif ($what == 3) { $dbh->do("update shop.t set u = '$t', v = v + 1 where id = $id"); }
		elsif ($what == 4) { $dbh->do("delete from shop.t where id = $id"); }
		elsif ($what == 5) { $dbh->do("replace into shop.t values ($id, " . int(rand(3)) . ", $v, '$t', null)"); }
		elsif ($what == 6) { $dbh->do("update ignore shop.t set part = " . int(rand(3)) . ", v = $v where id = $id"); }
		elsif ($what == 7) { $dbh->do("insert into shop.k values (" . int(rand(20)) . ', ' . int(rand(10)) . ')'); }
		else { my $a = int(rand(20)); $dbh->do(rand() < 0.5 ? "update shop.k set b = b + 1 where a = $a limit 1" : "delete from shop.k where a = $a limit 1"); }
	}
	rand() < 0.1 ? $dbh->rollback : $dbh->commit;
	return;
}

sub there { return join("\n", map { join('|', map { $_ // '~' } @$_) } $source->query_rows($_[0])); }
sub here { return $postgres->psql("select coalesce(string_agg(array_to_string(array[$_[0]]::text[], '|', '~'), e'\\n' order by $_[0]), '') from $_[1]"); }
sub is_mirrored
{
	my ($pipeline, $when) = @_;
	$pipeline->wait_for_catchup;
	my %same = (
		t => [ here('id, part, twice, u', 'shop.t'), there(q{select id, part, v * 2, reverse(u) from shop.t where v % 3 <> 0 order by 1, 2}) ],
		p => [ here('ident, a, sum, bee, c', 'shop.p'), there('select id, a, a + id, b, c from shop.p order by 1') ],
		k => [ here('a, s', 'shop.k'), there('select a, a + b from shop.k where b < 7 order by 1, 2') ]);
	for my $table (sort keys %same)
	{
		my ($here, $there) = @{ $same{$table} };
		ok($here eq $there, "$when: $table has " . (() = $there =~ /$/mg) . ' rows, those of the source') or do
		{
			my %here = map { ($_ => 1) } split(/\n/, $here);
			my %there = map { ($_ => 1) } split(/\n/, $there);
			diag('only here: ' . join(', ', (grep { !$there{$_} } sort keys %here)[ 0 .. 9 ]), "\nonly there: " . join(', ', (grep { !$here{$_} } sort keys %there)[ 0 .. 9 ]), "\n", $pipeline->describe);
		};
	}
	$pipeline->is_verified("$when: cdc_verify() says so too");
	return;
}

my @transforms = (
	'{"tables": "shop.t", "projection": "part, v * 2 AS twice, cdc_table AS origin, reverse(u) AS u, id", "filter": "v % 3 <> 0", "key": ["id", "part", "origin"]}',
	'{"tables": "shop.p", "projection": "c, b AS bee, a + id AS sum, id AS ident, a"}',
	'{"tables": "shop.k", "projection": "a, a + b AS s", "filter": "b < 7"}');
for my $collapse ('auto', 'off')
{
	my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, schema => 'shop',
		options => sprintf('{"snapshot_chunk_rows": 40, "batch_max_ms": %d, "max_rows_per_second": 2500, "collapse": "%s", "transforms": [%s]}', int(rand(100)), $collapse, join(', ', @transforms)));
	$pipeline->setup if $collapse eq 'auto';
	$source->start_writers(3, \&change);
	$pipeline->start;
	for my $kill (1 .. 3)
	{
		my $before = $postgres->psql(q{select coalesce(sum(changes), 0) from pg_stat_cdc_pipeline});
		$postgres->poll(q{select count(*) > 0 and count(*) filter (where state = 'done') > 0 from cdc_bridge.snapshot_chunk}, 't', 10);
		my ($pid) = split(/\n/, $postgres->psql(q{select pid from pg_stat_activity where backend_type like 'cdc_bridge % worker' and backend_type !~ 'maint' order by random() limit 1}));
		$postgres->kill9_process($pid) if $pid;
	}
	$pipeline->wait_for_tables;
	$source->stop_writers;
	is_mirrored($pipeline, "collapse $collapse, the copy");
	my $conflicts = $postgres->psql('select sum(conflicts) from pg_stat_cdc_table');
	$source->start_writers(3, \&change);
	my ($file, $offset) = $source->binlog_position;
	CdcBridge::Env::poll_until(sub { my ($f, $o) = $source->binlog_position; return $f ne $file || $o > $offset + 200_000; }) or die "nobody writes\n";
	$source->stop_writers;
	is_mirrored($pipeline, "collapse $collapse, the stream");
	is($postgres->psql('select sum(conflicts) from pg_stat_cdc_table'), $conflicts, "collapse $collapse: what the filter explains is no conflict");
	is($postgres->psql('select count(*) from cdc_bridge.snapshot_deleted'), 0, "collapse $collapse: no notes of the copy are left");
	if ($collapse eq 'off')
	{
		$source->start_writers(3, \&change);
		$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.t')});
		ok($postgres->poll('select tables_asked = tables_done from cdc_bridge.pipeline_state', 't', 30), 'a new copy is begun');
		$pipeline->wait_for_tables;
		$source->stop_writers;
		is_mirrored($pipeline, 'the new copy');
	}
	$pipeline->stop->drop->drop_target;
}
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
